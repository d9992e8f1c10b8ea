"""Tests of the parser of manual pages."""

import gzip

import pytest

from quipu.errors import InvalidDocument
from quipu.parse import sniff_media_type
from tests.unit.parse.files import read, texts

_MAN = r''''\" t
.\" a comment
.ie \n(.g .ds Aq \(aq
.el       .ds Aq '
.de Vx \"a macro
.SH "Not a heading"
..
.ig zz
Not shown.
.zz
.TH KILN 1 2024-05-01 "kiln 2.1"
.SH NAME
kiln \- bake bricks
.SH SYNOPSIS
.B kiln
.RB [ \-v ]
.I file
.SH OPTIONS
.TP
.BR \-d ", " \-\-degrees =\fIN\fR
Heat to \fIN\fR degrees\(em900 if it\*(Aqs missing.
.TP
.B \-v
.TQ
.B \-\-verbose
Say more.
.IP \(bu 2
An item.
.PP
\-\-quiet
.RS 4
Say less.
.RE
.SS "Heat and time"
.nf
kiln \-d 900 \\
  wall.brick
.fi
.if t .ig
.ie n .IP """\-x""" 4
.el .IP "\f(CW\-x\fR" 4
Only once.
.TS
tab(|);
l l.
Clay|Degrees
red|900
T{
.BR white ,
.br
clay
T}|1200
.TE
'''

_MDOC = r""".Dd $Mdocdate: May 1 2024 $
.Dt KILND 8
.Os
.Sh NAME
.Nm kilnd
.Nd the kiln daemon
.Sh SYNOPSIS
.Nm
.Op Fl 46
.Op Fl p Ar port Ns Op : Ns Ar host
.Op Fl Fl help
.Ar
.Sh DESCRIPTION
.Nm
keeps a kiln warm
.Pq see Xr kiln 1 , Xr brick 5 .
.Bl -tag -width Ds
.It Fl p Ar port
Listen on
.Ar port .
.Pp
The default is 900.
.It Fl D Xo
.Sm off
.Oo Ar address : Oc
.Ar port
.Xc
Listen twice.
.It Cm Degrees
.El
.Bl -bullet
.It
First.
.It
Second.
.El
.Bd -literal
$ kilnd -p 900
.Ed
.Dl # kilnd
Report to
.An Alice Kober Aq Mt kober@example.org .
"""


def test_a_page_of_man_has_its_sections_options_code_and_tables() -> None:
    parsed = read("kiln.man", _MAN.encode())
    assert (parsed.title, parsed.metadata["date"]) == ("kiln(1)", "2024-05-01")
    assert texts(parsed) == [
        "Name",
        "kiln - bake bricks",
        "Synopsis",
        "kiln [-v] file",
        "Options",
        "-d, --degrees=N\nHeat to N degrees—900 if it's missing.",
        "-v, --verbose\nSay more.",
        "• An item.",
        "--quiet\nSay less.",
        "Heat and time",
        "```text\nkiln -d 900 \\\n  wall.brick\n```",
        '"-x"\nOnly once.',
        "Clay | Degrees\nred | 900\nwhite, clay | 1200",
    ]
    kinds = {block.kind for block in parsed.blocks}
    assert kinds == {"heading", "paragraph", "list", "code", "table"}
    assert parsed.blocks[10].headings == ("Options", "Heat and time")


def test_a_page_of_mdoc_has_the_text_of_its_macros() -> None:
    parsed = read("kilnd.mdoc", _MDOC.encode())
    assert (parsed.title, parsed.metadata["date"]) == ("kilnd(8)", "May 1 2024")
    assert texts(parsed) == [
        "Name",
        "kilnd — the kiln daemon",
        "Synopsis",
        "kilnd [-46] [-p port[:host]] [--help] file ...",
        "Description",
        "kilnd keeps a kiln warm (see kiln(1), brick(5)).",
        "-p port\nListen on port.",
        "The default is 900.",
        "-D [address:] port\nListen twice.",
        "Degrees",
        "• First.",
        "• Second.",
        "```text\n$ kilnd -p 900\n```",
        "```text\n# kilnd\n```",
        "Report to Alice Kober <kober@example.org>.",
    ]


def test_a_page_is_known_by_its_first_lines_whatever_its_name_and_also_packed() -> None:
    assert sniff_media_type("kiln.1", _MAN.encode()) == sniff_media_type("kilnd.8", _MDOC.encode()) == "text/troff"
    assert sniff_media_type("kiln.log.1", b"May 1 started\n.THE end\n") == "text/plain"
    assert read("kiln.1.gz", gzip.compress(_MAN.encode())).title == "kiln(1)"


@pytest.mark.parametrize(
    "line",
    [
        ".if n " * 3_000 + "text",
        ".Op " + "Op " * 3_000,
        r"\[" * 200_000,
        r"\h'" * 200_000,
        r"\*[" * 200_000,
        '.B "' * 100_000,
        ".ds A \\*A\\*A\\*Ax\n" * 1_000 + r"\*A" * 1_000,
        ".if n \\{\n" * 5_000,
        ".TS\nl.\n" + "T{\n" * 20_000,
        ".RS\n.TP\n.Bl -tag\n.It\n" * 5_000,
    ],
    ids=["conditions", "macros", "characters", "motions", "strings", "quotes", "nested", "blocks", "cells", "lists"],
)
def test_a_page_that_is_made_to_cost_much_is_read_or_refused(line: str) -> None:
    page = f".TH A 1\n.SH NAME\na \\- b\n{line}\nLast words.\n"
    try:
        parsed = read("a.man", page.encode())
    except InvalidDocument as error:
        assert "nests deeper" in str(error)
    else:
        assert len(parsed.text) < 100 * len(page)
