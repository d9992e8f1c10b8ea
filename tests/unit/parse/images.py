"""Pictures for tests: PNG files in which is written what the scripted model sees in them, and documents with them."""

import struct
import zlib
from collections.abc import Sequence
from email.message import EmailMessage
from io import BytesIO

import docx
import pypdfium2
from docx.shared import Pt
from PIL import Image
from pptx import Presentation

from tests.unit.parse.files import zipped


def png(seen: str = "", *, size: tuple[int, int] = (120, 80), colour: int = 90) -> bytes:
    """Return a picture of one grey; `seen` (ASCII) is what the scripted model replies."""
    stream = BytesIO()
    Image.new("L", size, colour).save(stream, "PNG")
    content = stream.getvalue()
    text = b"tEXtDescription\0" + seen.encode("ascii") + b"\n"
    chunk = struct.pack(">I", len(text) - 4) + text + struct.pack(">I", zlib.crc32(text))
    end = content.rindex(b"IEND") - 4
    return content[:end] + (chunk if seen else b"") + content[end:]


def word_file(paragraphs: Sequence[str | bytes], alts: Sequence[str] = ()) -> bytes:
    """Return a Word document of texts and pictures; `alts` are the alternative texts of the pictures in order."""
    document, remaining = docx.Document(), list(alts)
    for part in paragraphs:
        if isinstance(part, str):
            document.add_paragraph(part)
        else:
            shape = document.add_picture(BytesIO(part), width=Pt(90))
            properties = shape._inline.docPr
            properties.set("descr", remaining.pop(0) if remaining else "")
    stream = BytesIO()
    document.save(stream)
    return stream.getvalue()


def slides(*pictures: bytes) -> bytes:
    """Return a presentation with a slide for each picture."""
    presentation = Presentation()
    for number, picture in enumerate(pictures, 1):
        slide = presentation.slides.add_slide(presentation.slide_layouts[5])
        slide.shapes.title.text = f"Slide {number}"
        slide.shapes.add_picture(BytesIO(picture), 0, 0)
    stream = BytesIO()
    presentation.save(stream)
    return stream.getvalue()


def book(body: str, *pictures: bytes) -> bytes:
    """Return an e-book with one chapter, and pictures as img/1.png and so on."""
    package = (
        '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="c" href="text/c.xhtml"'
        ' media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine></package>'
    )
    container = '<container><rootfiles><rootfile full-path="book.opf"/></rootfiles></container>'
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": container,
            "book.opf": package,
            "text/c.xhtml": f"<html><body>{body}</body></html>",
            **{f"img/{number}.png": picture for number, picture in enumerate(pictures, 1)},
        }
    )


def message(text: str, *pictures: bytes) -> bytes:
    """Return an e-mail with pictures as attachments."""
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = "Figures", "a@example.org", "b@example.org"
    mail.set_content(text)
    for number, picture in enumerate(pictures, 1):
        mail.add_attachment(picture, maintype="image", subtype="png", filename=f"{number}.png")
    return mail.as_bytes()


def pdf(pages: Sequence[Sequence[tuple[float, str | Image.Image]]], *, page_height: int = 842) -> bytes:
    """Return a PDF; each page has lines of text and pictures of 200 points, each at a height in points."""
    objects: list[bytes] = [b"", b"", b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for page in pages:
        images, drawing = {}, ""
        for height, content in page:
            if isinstance(content, str):
                drawing += f"BT /F 11 Tf 60 {height} Td ({content}) Tj ET\n"
                continue
            grey = content.convert("L")
            head = f"<< /Type /XObject /Subtype /Image /Width {grey.width} /Height {grey.height}"
            data = zlib.compress(grey.tobytes())
            head += f" /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /FlateDecode /Length {len(data)} >>"
            objects.append(head.encode() + b"\nstream\n" + data + b"\nendstream")
            name = f"I{len(objects)}"
            images[name] = len(objects)
            drawing += f"q 200 0 0 100 60 {height} cm /{name} Do Q\n"
        names = " ".join(f"/{name} {number} 0 R" for name, number in images.items())
        objects.append(f"<< /Length {len(drawing)} >>\nstream\n{drawing}\nendstream".encode())
        resources = f"<< /Font << /F 3 0 R >> /XObject << {names} >> >>"
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 {page_height}] /Resources {resources}"
            f" /Contents {len(objects)} 0 R >>".encode()
        )
        kids.append(f"{len(objects)} 0 R")
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R >>"
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    written = b"%PDF-1.4\n"
    for number, body in enumerate(objects, 1):
        written += f"{number} 0 obj\n".encode() + body + b"\nendobj\n"
    written += b"trailer << /Root 1 0 R >>\n%%EOF\n"
    stream = BytesIO()
    pypdfium2.PdfDocument(written).save(stream)  # with a table of its objects
    return stream.getvalue()
