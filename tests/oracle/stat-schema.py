#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Hold documents of pmstat against docs/pmstat.schema.json.

usage: stat-schema.py SCHEMA FILE...        exit status 1 and lines about what is wrong
       stat-schema.py SCHEMA --test PRINT SUITE-SCHEMA
                                            TAP: what our writer writes is valid; damage is not

Keys that the schema does not name are refused here, though readers pass them over.
"""

import copy
import json
import subprocess
import sys

try:
    import jsonschema
    VALIDATOR = jsonschema.Draft202012Validator
except (ImportError, AttributeError):
    VALIDATOR = None


def closed(schema):
    """The schema, changed to forbid keys that it does not name."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: closed(value) for key, value in schema.items()}
    # Schemas of if, then and else name only some of the keys.
    if result.get('type') == 'object' and 'properties' in result:
        result['additionalProperties'] = False
    return result


def errors(validator, document):
    return [f'{"/".join(map(str, error.absolute_path)) or "document"}: {error.message[:200]}'
            for error in validator.iter_errors(document)]


def damages(document):
    """Documents that differ from @document in one place, which the schema forbids."""
    def change(path, value):
        result = copy.deepcopy(document)
        place = result
        for key in path[:-1]:
            place = place[key]
        if value is None:
            del place[path[-1]]
        else:
            place[path[-1]] = value
        return result

    yield 'a version above', change(['version'], 2)
    for key in document:
        yield f'no {key}', change([key], None)
    for key in document['events'][0]:
        yield f'an event without {key}', change(['events', 0, key], None)
    for key in document['scopes'][0]:
        yield f'a scope without {key}', change(['scopes', 0, key], None)
    yield 'an unknown key', change(['runs', 0, 'news'], 1)
    yield 'a value as text', change(['runs', 0, 'counts', 0, 'value'], '123')
    yield 'a fraction', change(['runs', 0, 'counts', 0, 'value'], 1.5)
    yield 'an unknown status', change(['runs', 0, 'counts', 0, 'status'], 'fine')
    yield 'a value that is not supported', change(
        ['runs', 0, 'counts', 0], {'value': 1, 'status': 'not_supported'})
    yield 'no value that is ok', change(
        ['runs', 0, 'counts', 0], {'value': None, 'status': 'ok'})
    yield 'two ends', change(['runs', 1, 'exit_code'], 3)
    yield 'half a spread', change(['scopes', 0, 'per_call', 0], {'min': 1})


def suite_damages(suite):
    """The same for suites."""
    for key in suite:
        yield f'no {key}', {k: v for k, v in suite.items() if k != key}
    yield 'no cases', dict(suite, cases=[])
    for name in ['', 'a\nb', 'a\x9b', 'x' * 201, None]:
        yield f'a case {name!r:.20}', dict(suite, cases=[dict(suite['cases'][0], case=name)])
    yield 'no document', dict(suite, cases=[{'case': 'a'}])
    yield 'another document', dict(suite, cases=[dict(suite['cases'][0], stat=suite)])


def test_suites(validator, print_stat, path):
    """The schema of suites refers to that of documents, which stands in for it here."""
    with open(path, encoding='utf-8') as file:
        schema = json.load(file)
    VALIDATOR.check_schema(schema)
    schema['properties']['cases']['items']['properties']['stat'] = {'type': 'object'}
    suites = VALIDATOR(closed(schema))

    def found_in(suite):
        found = errors(suites, suite)
        for case in suite.get('cases', []):
            found += errors(validator, case.get('stat', {}))
        return found

    suite = json.loads(
        subprocess.run([print_stat, '--suite'], stdout=subprocess.PIPE, check=True).stdout)
    found = found_in(suite)
    yield 'a suite that is written is valid', not found, found
    for name, damaged in suite_damages(suite):
        yield f'not a valid suite: {name}', bool(found_in(damaged)), []


def test(validator, print_stat, suite_schema):
    cases = []
    for option in [], ['--least']:
        output = subprocess.run([print_stat, *option], stdout=subprocess.PIPE, check=True).stdout
        document = json.loads(output)
        found = errors(validator, document)
        cases.append((f'what is written is valid {option}', not found, found))
        if not option:
            for name, damaged in damages(document):
                cases.append((f'not valid: {name}', bool(errors(validator, damaged)), []))
    cases += test_suites(validator, print_stat, suite_schema)
    print(f'1..{len(cases)}')
    for number, (name, ok, found) in enumerate(cases, 1):
        for line in found:
            print(f'# {line}')
        print(f'{"" if ok else "not "}ok {number} - {name}')
    return 0 if all(ok for _, ok, _ in cases) else 1


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    if not VALIDATOR:
        print('1..0 # SKIP python3-jsonschema with draft 2020-12 is not there')
        return 0
    with open(sys.argv[1], encoding='utf-8') as file:
        schema = json.load(file)
    VALIDATOR.check_schema(schema)
    validator = VALIDATOR(closed(schema))
    if sys.argv[2] == '--test':
        return test(validator, sys.argv[3], sys.argv[4])
    bad = 0
    for name in sys.argv[2:]:
        with open(name, encoding='utf-8') as file:
            for line in errors(validator, json.load(file)):
                print(f'{name}: {line}')
                bad = 1
    return bad


if __name__ == '__main__':
    sys.exit(main())
