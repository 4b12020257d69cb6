#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Look at a file of GitLab CI, and print the script of a job as the runner gets it.

usage: gitlab.py FILE JOB     exit status 1 and what is wrong, 77 where YAML cannot be read

GitLab checks such files on its servers only: this knows the keywords of jobs, of which type
they are, and nothing beyond.
"""

import sys

try:
    import yaml
except ImportError:
    yaml = None

LISTS = {'before_script', 'script', 'after_script', 'rules'}
MAPS = {'variables', 'artifacts', 'cache'}
TEXTS = {'stage', 'image', 'timeout'}
OTHERS = {'interruptible', 'allow_failure', 'tags', 'needs', 'retry'}
ARTIFACTS = {'when', 'paths', 'reports', 'expire_in', 'name'}


def wrong(job):
    for key, value in job.items():
        if key in LISTS and not isinstance(value, list):
            yield f'{key} is no list'
        elif key in MAPS and not isinstance(value, dict):
            yield f'{key} is no map'
        elif key in TEXTS and not isinstance(value, str):
            yield f'{key} is no text'
        elif key not in LISTS | MAPS | TEXTS | OTHERS:
            yield f'{key} is not known'
    for key in 'before_script', 'script':
        for line in job.get(key, []):
            if not isinstance(line, str):
                yield f'{key} has a line that is no text: {line}'
    if 'script' not in job:
        yield 'no script'
    for key, value in job.get('variables', {}).items():
        if not isinstance(value, str):
            yield f'the variable {key} is no text'
    for key in job.get('artifacts', {}):
        if key not in ARTIFACTS:
            yield f'artifacts: {key} is not known'


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if not yaml:
        print('python3-yaml is not there')
        return 77
    with open(sys.argv[1], encoding='utf-8') as file:
        jobs = yaml.safe_load(file)
    job = jobs.get(sys.argv[2])
    if not isinstance(job, dict):
        print(f'no job {sys.argv[2]}')
        return 1
    found = list(wrong(job))
    for line in found:
        print(line)
    if not found:
        print('\n'.join(job['script']))
    return 1 if found else 0


if __name__ == '__main__':
    sys.exit(main())
