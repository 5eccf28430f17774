"""Sentence-ending punctuation as regular expressions over UTF-8.

Sources: the properties Sentence_Break and Line_Break as ICU 77 has them, which tensorflow-text 2.21 has, and what sentence_fragmenter_v2.cc of
tensorflow/text adds to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["ACRONYM", "CLOSING", "ELLIPSIS", "EMOTICON", "TERMINAL", "WHITE"]

#: Code points that end a sentence, in hexadecimal.
_TERMINAL = (
    "21 2E 3F 37E 55C 55E 589 61D-61F 6D4 700-702 7F9 837 839 83D-83E 964-965 104A-104B 1362 1367-1368 166E "
    "1735-1736 17D4-17D5 1803 1809 1944-1945 1AA8-1AAB 1B4E-1B4F 1B5A-1B5B 1B5E-1B5F 1B7D-1B7F 1C3B-1C3C 1C7E-1C7F "
    "2024 2026 203C-203D 2047-2049 2CF9-2CFB 2E2E 2E3C 2E53-2E54 3002 A4FF A60E-A60F A6F3 A6F7 A876-A877 A8CE-A8CF "
    "A92F A9C8-A9C9 AA5D-AA5F AAF0-AAF1 ABEB FE12 FE15-FE16 FE52 FE56-FE57 FF01 FF0E FF1F FF61 10A56-10A57 "
    "10F55-10F59 10F86-10F89 11047-11048 110BE-110C1 11141-11143 111C5-111C6 111CD 111DE-111DF 11238-11239 "
    "1123B-1123C 112A9 113D4-113D5 1144B-1144C 115C2-115C3 115C9-115D7 11641-11642 1173C-1173E 11944 11946 "
    "11A42-11A43 11A9B-11A9C 11C41-11C42 11EF7-11EF8 11F43-11F44 16A6E-16A6F 16AF5 16B37-16B38 16B44 16D6E-16D6F "
    "16E98 1BC9F 1DA88"
)
#: Brackets and the like that close; the ideographic full stops are among them.
_CLOSING = (
    "29 3E 5D 7D F3B F3D 169C 2046 207E 208E 2309 230B 232A 2769 276B 276D 276F 2771 2773 2775 27C6 27E7 27E9 27EB "
    "27ED 27EF 2984 2986 2988 298A 298C 298E 2990 2992 2994 2996 2998 29D9 29DB 29FD 2E23 2E25 2E27 2E29 2E56 2E58 "
    "2E5A 2E5C 3001-3002 3009 300B 300D 300F 3011 3015 3017 3019 301B 301E-301F FD3E-FD3F FE10-FE12 FE18 FE36 FE38 "
    "FE3A FE3C FE3E FE40 FE42 FE44 FE48 FE50 FE52 FE5A FE5C FE5E FF09 FF0C FF0E FF3D FF5D FF60-FF61 FF63-FF64 "
    "1325B-1325D 13282 13287 13289 1337A-1337B 13438 1343D 1343F 145CF"
)
_WHITE = "9-D 20 85 A0 1680 2000-200A 2028-2029 202F 205F 3000"
#: In the order in which they are looked for.
_EMOTICONS = (
    r""":(:) :) :( :o) :] :3 :> =] =) :} :^) :-D :-))))) :-)))) :-))) :-)) :-) >:[ :-( :-c :c :-< :< :-[ :[ :{ ;( :-|| """
    r""":@ >:( :'-( :'( :'-) :') D:< >:O :-O :-o :* :-* :^* ;-) ;) *-) *) ;-] ;] ;^) :-, >:P :-P :p =p :-p :P =P ;p """
    r""";-p ;P ;-P >:\ >:/ :-/ :-. :/ :\ =/ =\ :| :-| :$ :-# :# O:-) 0:-) 0:) 0;^) >:) >;) >:-) }:-) }:) 3:-) >_>^ """
    r"""^<_< |;-) |-O :-J :-& :& #-) <3 8-) ^_^ :D =D O=) }=) B) B-) =| -_- o_o; u_u :-\ :s :S :-s :-S ;* ;-*=( >.< """
    r""">:-( >=( ;_; T_T ='( >_< D: :o =o o.o :O =O O.O x_x X-( X( X-o X-O :X) (=^.^=) (=^..^=) =^_^= -<@% (]:{ <\3 """
    r"""~@~ 8'( XD DX"""
)


def _points(ranges: str) -> Iterator[int]:
    for part in ranges.split():
        first, _, last = part.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)


def _one_of(ranges: str) -> bytes:
    """Return a regular expression for one of the code points."""
    return b"(?:" + b"|".join(re.escape(chr(point).encode()) for point in _points(ranges)) + b")"


ELLIPSIS = rb"(?:\.\.\.|\xe2\x80\xa6)"
TERMINAL = _one_of(_TERMINAL)
CLOSING = _one_of(_CLOSING)
WHITE = _one_of(_WHITE)
EMOTICON = b"(?:" + b"|".join(re.escape(each.encode()) for each in _EMOTICONS.split()) + b")"
#: Two capital letters or more, each with a full stop.
ACRONYM = rb"(?:[A-Z]\.){2,}"
