"""Limits: how much of one document a parser may hold in memory.

They bound the memory of parsing by the size of the file and these constants (docs/adr/0012). A file above a limit is
refused before or while it is unpacked, not after.
"""

# Text of one document. A table of a million rows may be this long; War and Peace in English has 3.2 million.
MAX_CHARACTERS = 64_000_000
# Blocks of one document, about 300 bytes each.
MAX_BLOCKS = 1_000_000
# Cells of a CSV row, about 60 bytes each: the whole row is in memory.
MAX_ROW_CELLS = 1_000_000

# One part of an archive (a part of an Office file, a chapter of an e-book) is read into memory at once. The longest
# novels take 30 MB as Word XML.
MAX_PART_BYTES = 256_000_000
# All bytes read from an archive, most of them streamed: a sheet of a million rows and ten columns is 600 MB of XML.
MAX_UNPACKED_BYTES = 2_000_000_000
# Compression ratio. Deflate reaches 1,032, Office XML 10 to 30, sheets of equal cells up to about 150.
MAX_RATIO = 250
# Smaller parts may have any ratio, because they fit in memory.
RATIO_FROM_BYTES = 16_000_000
# Entries of an archive: Python keeps about 1 kB for each. E-books with a file a page have a few thousand.
MAX_ENTRIES = 50_000

# Elements and attributes of an XML tree in memory, at most about 400 bytes each. A thousand pages of Word have a
# million.
MAX_NODES = 2_500_000
# Bytes of one XML tag: all its attributes are built before they can be counted.
MAX_TAG_BYTES = 1_000_000

# Shared strings of a workbook, about 60 bytes each plus their characters.
MAX_SHARED_STRINGS = 5_000_000

# Values of one JSON text (a file, or a line of JSON lines), at most about 70 bytes each plus their characters.
MAX_JSON_VALUES = 4_000_000

# Parts of one e-mail, about 2 kB each; and lines that could begin one.
MAX_MAIL_PARTS = 10_000
MAX_MAIL_LINES = 4_000_000  # about 150 bytes each: a message with 300 MB of attachments
# Lines of one header, which the mail library collects before it parses them.
MAX_MAIL_HEADER_LINES = 50_000

# Large or unusual HTML and Markdown is read in a sandboxed process, which may use this much memory plus eight times the
# text, and this much CPU time. An HTML element takes up to 400 bytes.
MAX_MARKUP_BYTES = 1_000_000_000
MAX_MARKUP_SECONDS = 120
MAX_HTML_TAGS = 4_000_000

# Bytes of the reply of a server that parses files.
MAX_REMOTE_BYTES = 256_000_000

# A PDF is read in a sandboxed process, which may use this much memory plus twice the file, and this much CPU time.
MAX_PDF_BYTES = 1_000_000_000
MAX_PDF_SECONDS = 300
MAX_PDF_PAGES = 50_000
MAX_PDF_LINES = 2_000_000  # about 500 bytes each

# Scanned pages are recognised a few at a time, in a sandboxed process that may use this much memory plus twice the
# file, and this much CPU time; where that fails, one at a time. A page takes 2 to 10 s; an A4 page at 300 dpi has 8.7
# million pixels. The CPU time of all pages of a document is limited, too: a process that fails counts as its limit.
MAX_SCANS = 2_000
MAX_RECOGNITION_SECONDS = 14_400
SCANS_AT_ONCE = 8
MAX_SCAN_PIXELS = 20_000_000
MAX_SCAN_BYTES = 1_000_000_000
MAX_SCAN_SECONDS = 240
MAX_SINGLE_SCAN_SECONDS = 60
