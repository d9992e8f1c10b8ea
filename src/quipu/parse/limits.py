"""Limits: how much one document may make a parser hold, whatever its bytes say.

Together they bound the memory of parsing by the size of the file and these constants (docs/adr/0012): a hostile file is
refused before it is unpacked, or while it is, never after.
"""

# Text kept of one document. A million-row table is about half of it; War and Peace in English is 3.2 million.
MAX_CHARACTERS = 200_000_000

# What is read into memory at once from an archive (a part of an Office file, a chapter of an e-book). The text of the
# longest novels is 30 MB as Word XML.
MAX_PART_BYTES = 256_000_000
# What is read of an archive in all, most of it streamed: a sheet of a million rows and ten columns is 600 MB of XML.
MAX_UNPACKED_BYTES = 2_000_000_000
# Deflate reaches 1,032; Office XML 10 to 30, sheets of equal cells up to about 150.
MAX_RATIO = 250
# Below this no ratio is suspicious: it fits in memory anyway.
RATIO_FROM_BYTES = 16_000_000
# Entries of an archive: Python keeps about 1 kB for each. E-books with a file a page have a few thousand.
MAX_ENTRIES = 50_000

# Elements and attributes of an XML tree held at once, at most about 300 bytes each. A thousand pages of Word have a
# million.
MAX_NODES = 3_000_000
# Bytes of XML without an element's start or end: one tag with all its attributes is built before it can be counted.
MAX_SILENT_BYTES = 8_000_000

# Strings the cells of a workbook share, about 60 bytes each beside their characters.
MAX_SHARED_STRINGS = 5_000_000

# Values of one JSON text (a file, or a line of JSON lines), at most about 70 bytes each beside their characters.
MAX_JSON_VALUES = 4_000_000

# Parts of one e-mail, about 2 kB each; and lines that could begin one.
MAX_MAIL_PARTS = 10_000

# A PDF is read in a process of its own, which may take this much memory beside the file, and this long.
MAX_PDF_BYTES = 1_000_000_000
MAX_PDF_SECONDS = 300
MAX_PDF_PAGES = 50_000
MAX_PDF_LINES = 2_000_000  # about 500 bytes each
