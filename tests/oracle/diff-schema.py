#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hold documents of pmdiff against their schemas.

usage: diff-schema.py FORMAT FILE...    json, junit or sarif; exit status 1 and what is wrong,
                                        77 where what reads schemas is missing
       diff-schema.py --test PRINT      TAP: what our writers write is valid; damage is not

Keys that the schema does not name are refused here, though readers pass them over.
"""

import copy
import json
import os
import re
import shutil
import subprocess
import sys

try:
    import jsonschema
    VALIDATOR = jsonschema.Draft202012Validator
except (ImportError, AttributeError):
    VALIDATOR = None

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
SCHEMAS = {
    'json': os.path.join(TOP, 'docs/pmdiff.schema.json'),
    'sarif': os.path.join(TOP, 'tests/cli/fixtures/sarif.schema.json'),
    'junit': os.path.join(TOP, 'tests/cli/fixtures/junit.xsd'),
}


def closed(schema):
    """The schema, with no keys allowed but those that it names."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    if 'properties' in result and 'required' in result:
        result['additionalProperties'] = False
    return result


def missing(form):
    """What is missing to check this format, or None."""
    if form == 'junit':
        return None if shutil.which('xmllint') else 'xmllint is not there'
    return None if VALIDATOR else 'python3-jsonschema with draft 2020-12 is not there'


def no_constant(name):
    raise ValueError(f'{name} is no number in JSON')


def errors(form, data):
    """What is wrong with @data, bytes of a document."""
    if form == 'junit':
        done = subprocess.run(['xmllint', '--noout', '--nonet', '--schema', SCHEMAS[form], '-'],
                              input=data, stderr=subprocess.PIPE, check=False)
        return [] if done.returncode == 0 else done.stderr.decode(errors='replace').splitlines()
    try:
        document = json.loads(data, parse_constant=no_constant)
    except ValueError as error:
        return [str(error)]
    with open(SCHEMAS[form], encoding='utf-8') as file:
        schema = json.load(file)
    VALIDATOR.check_schema(schema)
    return [f'{"/".join(map(str, error.absolute_path)) or "document"}: {error.message[:200]}'
            for error in VALIDATOR(closed(schema)).iter_errors(document)]


TAKEN_OUT = object()


def change(document, path, value):
    """A document that differs in one thing."""
    result = copy.deepcopy(document)
    place = result
    for key in path[:-1]:
        place = place[key]
    if value is TAKEN_OUT:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return json.dumps(result).encode()


def damages(form, data):
    """Names and bytes of documents that the schema forbids."""
    if form == 'junit':
        text = data.decode()
        yield 'no number of tests', re.sub(' tests="[0-9]*"', '', text).encode()
        yield 'an attribute of some readers', text.replace(' time="0"', ' time="0" file="a"')
        yield 'a failure without a type', text.replace(' type="worse"', '')
        yield 'two results', text.replace('</failure>', '</failure><skipped/>')
        yield 'a date with a zone', re.sub(' timestamp="([^"]*)"', r' timestamp="\1Z"', text)
        return
    document = json.loads(data)
    if form == 'sarif':
        yield 'no version', change(document, ['version'], TAKEN_OUT)
        yield 'another version', change(document, ['version'], '2.2')
        tool = ['runs', 0, 'tool', 'driver']
        yield 'a tool without a name', change(document, tool + ['name'], TAKEN_OUT)
        result = ['runs', 0, 'results', 0]
        yield 'a result without a message', change(document, result + ['message'], TAKEN_OUT)
        yield 'a result without a place', change(document, result + ['locations'], [])
        yield 'a level of its own', change(document, result + ['level'], 'worse')
        place = result + ['locations', 0, 'physicalLocation']
        yield 'line 0', change(document, place + ['region', 'startLine'], 0)
        yield 'a blank in a URI', change(document, place + ['artifactLocation', 'uri'], 'a b')
        return
    yield 'a version above', change(document, ['version'], 2)
    for key in document:
        yield f'no {key}', change(document, [key], TAKEN_OUT)
    for key in document['rows'][0]:
        yield f'a row without {key}', change(document, ['rows', 0, key], TAKEN_OUT)
    yield 'a verdict of its own', change(document, ['rows', 0, 'verdict'], 'bad')
    yield 'worse without a number', change(document, ['rows', 0, 'new'], None)
    yield 'a change as text', change(document, ['rows', 0, 'change'], '3 %')
    yield 'NaN', data.replace(b'"p":null', b'"p":NaN', 1)
    yield 'a key that is not known', change(document, ['rows', 0, 'news'], 1)


def written(program, form, *options):
    return subprocess.run([program, form, *options], stdout=subprocess.PIPE, check=True).stdout


def test(program):
    cases = []
    for form in SCHEMAS:
        why = missing(form)
        if why:
            cases.append((f'{form} # SKIP {why}', True, []))
            continue
        for options in [], ['--least'], ['--cases']:
            found = errors(form, written(program, form, *options))
            cases.append((f'{form} that is written is valid {options}', not found, found))
        for name, damaged in damages(form, written(program, form)):
            damaged = damaged if isinstance(damaged, bytes) else damaged.encode()
            cases.append((f'{form} is not valid: {name}', bool(errors(form, damaged)), []))
    print(f'1..{len(cases)}')
    for number, (name, ok, found) in enumerate(cases, 1):
        for line in found:
            print(f'# {line}')
        print(f'{"" if ok else "not "}ok {number} - {name}')
    return 0 if all(ok for _, ok, _ in cases) else 1


def main():
    if len(sys.argv) == 3 and sys.argv[1] == '--test':
        return test(sys.argv[2])
    if len(sys.argv) < 3 or sys.argv[1] not in SCHEMAS:
        sys.exit(__doc__)
    why = missing(sys.argv[1])
    if why:
        print(why)
        return 77
    bad = 0
    for name in sys.argv[2:]:
        with open(name, 'rb') as file:
            for line in errors(sys.argv[1], file.read()):
                print(f'{name}: {line}')
                bad = 1
    return bad


if __name__ == '__main__':
    sys.exit(main())
