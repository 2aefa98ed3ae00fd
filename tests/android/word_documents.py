"""Word files of every kind of content, for the app's reader."""

from __future__ import annotations

import io
import zipfile

from docx.oxml import parse_xml
from tiny_documents import archive, saved, word

SPACES = " ".join(
    f'xmlns:{prefix}="{rest}"'
    for prefix, rest in (
        ("w", "http://schemas.openxmlformats.org/wordprocessingml/2006/main"),
        ("m", "http://schemas.openxmlformats.org/officeDocument/2006/math"),
        ("r", "http://schemas.openxmlformats.org/officeDocument/2006/relationships"),
        ("mc", "http://schemas.openxmlformats.org/markup-compatibility/2006"),
        ("v", "urn:schemas-microsoft-com:vml"),
        ("w14", "http://schemas.microsoft.com/office/word/2010/wordml"),
        ("wp", "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing"),
        ("a", "http://schemas.openxmlformats.org/drawingml/2006/main"),
        ("pic", "http://schemas.openxmlformats.org/drawingml/2006/picture"),
    )
)


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(inner: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{inner}</w:p>"


def styled(style: str, text: str) -> str:
    return paragraph(run(text), f'<w:pStyle w:val="{style}"/>')


def item(num: int, level: int, text: str, more: str = "") -> str:
    places = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{num}"/></w:numPr>'
    return paragraph(run(text), more + places)


def cell(inner: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{inner}</w:tc>"


def table(*rows: tuple[str, ...]) -> str:
    written = "".join(f"<w:tr>{''.join(row)}</w:tr>" for row in rows)
    return f"<w:tbl>{written}</w:tbl>"


def field(instruction: str, result: str = "", data: str = "") -> str:
    sign = "<w:r><w:fldChar w:fldCharType='{}'>{}</w:fldChar></w:r>"
    middle = sign.format("separate", "") + result if result else ""
    text = f"<w:r><w:instrText>{instruction}</w:instrText></w:r>"
    return sign.format("begin", data) + text + middle + sign.format("end", "")


def symbol(font: str, code: str) -> str:
    return f'<w:r><w:sym w:font="{font}" w:char="{code}"/></w:r>'


def math(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


def box(text: str) -> str:
    return f"<w:txbxContent>{paragraph(run(text))}</w:txbxContent>"


UP, DOWN = (f'<w:vertAlign w:val="{kind}script"/>' for kind in ("super", "sub"))
SYMBOLS = '<w:rFonts w:ascii="{0}" w:hAnsi="{0}"/>'
OWN_STYLES = (
    f'<w:style w:type="character" w:styleId="Up"><w:name w:val="Up"/><w:rPr>{UP}</w:rPr></w:style>',
    '<w:style w:type="character" w:styleId="Up2"><w:name w:val="Up2"/><w:basedOn w:val="Up"/>'
    "</w:style>",
    '<w:style w:type="character" w:styleId="No"><w:name w:val="No"/><w:rPr><w:vanish/></w:rPr>'
    "</w:style>",
    '<w:style w:type="paragraph" w:styleId="Mine"><w:name w:val="Mine"/>'
    '<w:basedOn w:val="Heading2"/></w:style>',
)
DELETED = '<w:rPr><w:del w:id="1" w:author="a"/></w:rPr>'
FORMULAS = (
    f"<m:f><m:num>{math('a+1')}</m:num><m:den>{math('b')}</m:den></m:f>",
    f"<m:sSup><m:e>{math('c')}</m:e><m:sup>{math('2')}</m:sup></m:sSup>",
    f"<m:sPre><m:sub>{math('6')}</m:sub><m:sup>{math('12')}</m:sup><m:e>{math('C')}</m:e></m:sPre>",
    f"<m:sSubSup><m:e>{math('x')}</m:e><m:sub>{math('i+1')}</m:sub><m:sup>{math('n')}</m:sup>"
    "</m:sSubSup>",
    f"<m:limLow><m:e>{math('lim')}</m:e><m:lim>{math('x→0')}</m:lim></m:limLow>",
    f"<m:limUpp><m:e>{math('y')}</m:e><m:lim>{math('z')}</m:lim></m:limUpp>",
    f"<m:rad><m:deg/><m:e>{math('x')}</m:e></m:rad>",
    f"<m:rad><m:deg>{math('3')}</m:deg><m:e>{math('x+1')}</m:e></m:rad>",
    f"<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub>{math('i')}</m:sub><m:sup>{math('n')}"
    f"</m:sup><m:e>{math('x')}</m:e></m:nary>",
    f"<m:d><m:dPr><m:begChr m:val='['/><m:endChr m:val=''/></m:dPr><m:e>{math('x')}</m:e>"
    f"<m:e>{math('y')}</m:e></m:d>",
    f"<m:func><m:fName>{math('sin')}</m:fName><m:e>{math('2x')}</m:e></m:func>",
    f"<m:acc><m:e>{math('p')}</m:e></m:acc>",
    f"<m:m><m:mr><m:e>{math('1')}</m:e><m:e>{math('0')}</m:e></m:mr><m:mr><m:e>{math('0')}</m:e>"
    f"<m:e>{math('1')}</m:e></m:mr></m:m>",
    f"<m:eqArr><m:e>{math('x=1')}</m:e><m:e>{math('y=2')}</m:e></m:eqArr>",
    f"<m:anything><m:e>{math('q')}</m:e></m:anything>",
)
MERGED, WIDE = '<w:vMerge w:val="restart"/>', '<w:gridSpan w:val="2"/>'
INNER = table((cell(paragraph(run("inner"))), cell(paragraph(run("two")))))
TICK = "<w:ffData><w:checkBox>{}</w:checkBox></w:ffData>"
LISTED = f"<w:txbxContent>{item(70, 0, 'listed')}</w:txbxContent>"
CHOICE = "<mc:Choice Requires='x'>{}</mc:Choice>"
PICTURE = (
    "<w:drawing><wp:inline><wp:docPr id='1' name='p' descr='a red\nfox'/><a:graphic><a:graphicData>"
    "<pic:pic/></a:graphicData></a:graphic></wp:inline></w:drawing>"
)

BODIES = (
    *(styled(style, f"{style} text") for style in ("Title", "Subtitle", "Heading1", "Heading6")),
    styled("Heading2", "Two") + paragraph("") + styled("Unknown", "plain"),
    *(paragraph(run("Is ") + f"<m:oMath>{formula}</m:oMath>" + run(" so")) for formula in FORMULAS),
    paragraph(run("Is "))
    + f"<m:oMathPara><m:oMath>{FORMULAS[0]}</m:oMath><m:oMath>{math('z')}</m:oMath></m:oMathPara>",
    paragraph(
        run("a ")
        + run("b", "<w:b/>")
        + run("c ", "<w:b/>")
        + run("d", "<w:b/><w:i/>")
        + run("e", "<w:i/>")
        + run("f", '<w:b w:val="0"/>')
        + run("g", "<w:strike/>")
        + run("h", '<w:rStyle w:val="Strong"/>')
        + run(" i")
    ),
    paragraph(run("10") + run("6", UP) + run(" CO") + run("2", DOWN) + run(" 21") + run("st", UP)),
    paragraph(run("x") + run("n + ", UP) + run("1", UP) + run(" y") + run("[3]", UP)),
    paragraph(
        run("one")
        + "<w:r><w:t>two</w:t><w:br/><w:t>three</w:t><w:br w:type='page'/><w:t>four</w:t>"
        "<w:cr/><w:t>five</w:t><w:tab/><w:t>six</w:t><w:ptab/><w:t>sev</w:t><w:softHyphen/>"
        "<w:t>en</w:t><w:noBreakHyphen/><w:t>eight</w:t><w:br w:type='x'/></w:r>"
    ),
    paragraph(run("Fami\u00adlie \u200bzero o\ufb03ce, می\u200cخواهم \ue0411&#160;km")),
    paragraph(
        run("a ") + f'<w:fldSimple w:instr="DATE">{run("b ")}</w:fldSimple>'
        f'<w:smartTag>{run("c ")}</w:smartTag><w:bdo w:val="ltr">{run("d ")}</w:bdo>'
        f'<w:ins w:id="1">{run("e ")}</w:ins>'
        f"<w:del w:id='2'><w:r><w:delText>gone</w:delText></w:r></w:del><w:moveFrom w:id='3'>"
        f"{run('away')}</w:moveFrom><w:moveTo w:id='4'>{run('f ')}</w:moveTo><w:ruby><w:rt>"
        f"{run('reading')}</w:rt><w:rubyBase>{run('g ')}</w:rubyBase></w:ruby><w:customXml>"
        f"{run('h ')}</w:customXml><w:unknown>{run('not')}</w:unknown><w:sdt><w:sdtPr/>"
        f"<w:sdtContent>{run('i')}</w:sdtContent></w:sdt>"
    ),
    paragraph(run("one "), DELETED) + paragraph(run("two")) + paragraph(run("three")),
    paragraph(
        run("10")
        + run("6", '<w:rStyle w:val="Up2"/>')
        + run(" a")
        + run("7", '<w:rStyle w:val="Up"/><w:vertAlign w:val="baseline"/>')
        + run(" b")
        + run("8", '<w:position w:val="8"/>')
        + run(" c")
        + run("9", '<w:position w:val="-7"/>')
        + run(" d")
        + run("0", '<w:position w:val="2"/>')
        + run("gone", '<w:rStyle w:val="No"/>')
        + run("kept", '<w:rStyle w:val="No"/><w:vanish w:val="0"/>')
    ),
    styled("Mine", "A heading of its own"),
    paragraph(
        run("\uf061\uf062 \uf0a3", SYMBOLS.format("Symbol"))
        + run(" ab ")
        + run("ab", SYMBOLS.format("Symbol"))
        + run(" \uf061 ")
        + run("\uf0fc", SYMBOLS.format("Wingdings"))
    ),
    table((cell(paragraph(run("a"))), cell(paragraph(run("b")))))[: -len("</w:tbl>")]
    + '<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>'
    + cell(paragraph(run("d")))
    + '</w:tr><w:tr><w:trPr><w:gridAfter w:val="1"/></w:trPr>'
    + cell(paragraph(run("e")))
    + "</w:tr></w:tbl>",
    paragraph(
        f"<m:oMath>{math('2')}<m:f><m:num>{math('1')}</m:num><m:den>{math('2')}</m:den></m:f>"
        f"{math('x')}</m:oMath>{run(' or ')}<m:oMath><m:bar><m:barPr><m:pos m:val='top'/></m:barPr>"
        f"<m:e>{math('x')}</m:e></m:bar></m:oMath>"
    ),
    paragraph(run("seen") + run(" not", "<w:vanish/>") + run(" too", '<w:vanish w:val="0"/>')),
    paragraph(run("T"), '<w:framePr w:dropCap="drop" w:lines="3"/>')
    + paragraph(run("he sea was calm.")),
    paragraph(
        f"<w:sdt><w:sdtPr><w14:checkbox><w14:checked w14:val='1'/></w14:checkbox></w:sdtPr>"
        f"<w:sdtContent>{run('☒')}</w:sdtContent></w:sdt>{run(' yes')}"
    ),
    paragraph(
        field("FORMCHECKBOX", data=TICK.format("<w:checked/>"))
        + run("on ")
        + field("FORMCHECKBOX", data=TICK.format("<w:default w:val='0'/>"))
        + run("off ")
        + field(
            "FORMDROPDOWN",
            data="<w:ffData><w:ddList><w:result w:val='1'/><w:listEntry w:val='A'/>"
            "<w:listEntry w:val='B'/></w:ddList></w:ffData>",
        )
        + run(" town")
    ),
    *(
        paragraph(run("x = ") + field(instruction) + run("."))
        for instruction in (
            *(r" EQ \a \al \co2 \vs3(Axy,Bxy,A,B) ", r"EQ \b \bc\{ (\r(3,x))", r"EQ \i \su(1,5,3)"),
            *(
                r"EQ \l(A,B)",
                r"EQ \r(2)",
                r"eq x\s\up8(UB)\s\do4(2) \* MERGEFORMAT",
                r"EQ \x \to(5)",
            ),
            r'EQ \* jc2 \* "Font:MS Mincho" \* hps10 \o\ad(\s\up 9(とうきょう),東京)',
            *(r"EQ \f(-b ± \r(b\s\up8(2) - 4ac);2a)", r"EQ \f(1,5;2)", r"EQ \f(f(a,b),2) \\ \(x\)"),
            *(r"EQ \f((a+b),2", r"EQ \i\fc\U(,,x)", r"EQ \f" + "(" * 200, "EQ \\", "EQUAL 1"),
        )
    ),
    paragraph(
        field(r"EQ \f(1,2)", run("0.5"))
        + run(" on ")
        + field("DATE", run("Monday"))
        + r"<w:fldSimple w:instr='EQ \r(2)'/>"
    ),
    paragraph(
        run("See ")
        + field(' HYPERLINK "https://a.org/b" ', run("this") + run(" place", "<w:b/>"))
        + run(", ")
        + field(' HYPERLINK \\l "there" ', run("there"))
        + run(", ")
        + field(" PAGEREF x ", run("7"))
        + f"<w:hyperlink w:anchor='c'>{run(' inside')}</w:hyperlink>"
        + f"<w:hyperlink r:id='rId999'>{run(' lost')}</w:hyperlink>"
        + "<w:bookmarkStart w:id='1' w:name='b'/><w:bookmarkEnd w:id='1'/>"
    ),
    paragraph(
        f"<w:r><mc:AlternateContent>{CHOICE.format('<w:t>one </w:t>')}</mc:AlternateContent>"
        f"<mc:AlternateContent>{CHOICE.format('<w:t>not</w:t>')}<mc:Fallback><w:t>two </w:t>"
        f"</mc:Fallback></mc:AlternateContent><mc:AlternateContent>{CHOICE.format('<w:t>three</w:t>')}"
        "<mc:Fallback><w:t/></mc:Fallback></mc:AlternateContent></w:r>"
    ),
    paragraph(
        run("before ")
        + f"<w:r><w:pict><v:shape><v:textbox>{box('in a box')}</v:textbox></v:shape></w:pict></w:r>"
        + run("after")
    )
    + paragraph(run("next")),
    paragraph(run("before") + f"<w:r><w:drawing>{box('drawn')}</w:drawing></w:r>" + run("after")),
    paragraph(
        f"<w:r><mc:AlternateContent>{CHOICE.format(f'<w:drawing>{LISTED}</w:drawing>')}<mc:Fallback>"
        f"<w:pict><v:shape><v:textbox>{LISTED}</v:textbox></v:shape></w:pict></mc:Fallback>"
        "</mc:AlternateContent></w:r>"
    )
    + item(70, 0, "next"),
    item(70, 0, "a")
    + item(70, 0, "b ", DELETED)
    + item(70, 0, "c")
    + paragraph(run("d"), '<w:framePr w:dropCap="drop"/>')
    + item(70, 0, "e"),
    paragraph(run("See ") + f"<w:r>{PICTURE}</w:r>" + run(".")),
    paragraph(
        "".join(
            symbol(font, char)
            for font, char in (
                *(("Wingdings", "F0FE"), ("Symbol", "F061"), ("Webdings", "61"), ("Other", "F0FE")),
                *(("Wingdings 2", "F052"), ("Wingdings 3", "F0C6"), ("Symbol", "zz")),
            )
        )
    ),
    *(
        "".join(
            paragraph(run(f"{code:x}:") + symbol(font, f"F0{code:02X}")) for code in range(33, 256)
        )
        for font in ("Symbol", "Webdings", "Wingdings", "Wingdings 2", "Wingdings 3")
    ),
    item(70, 0, "a")
    + paragraph(run("between"))
    + item(70, 0, "b")
    + item(70, 1, "c")
    + item(70, 1, "d")
    + item(70, 0, "e")
    + item(70, 1, "f")
    + item(70, 2, "g")
    + item(70, 6, "h"),
    item(70, 0, "a")
    + item(72, 0, "b")
    + paragraph(run("and"))
    + item(72, 0, "c")
    + item(70, 0, "d"),
    item(73, 0, "a") + item(73, 1, "b") + item(73, 2, "c") + paragraph("") + item(73, 2, "d"),
    item(70, 0, "One", '<w:pStyle w:val="Heading1"/>')
    + item(70, 1, "Two", '<w:pStyle w:val="Heading2"/>')
    + item(71, 0, "three")
    + item(0, 0, "four")
    + item(70, 0, ""),
    "".join(
        styled(f"List{kind}{level}", f"{kind} {level}")
        for kind in ("Bullet", "Number")
        for level in ("", "2", "3", "2", "")
    ),
    item(70, 0, "a")
    + "<w:bookmarkStart w:id='1' w:name='b'/>"
    + item(70, 1, "b")
    + paragraph("<w:bookmarkStart w:id='2' w:name='_GoBack'/>")
    + item(70, 0, "c"),
    table(
        (cell(paragraph(run("Year")), MERGED), cell(paragraph(run("Sales")), WIDE)),
        (
            cell("<w:p/>", "<w:vMerge/>"),
            cell(paragraph(run("North")) + paragraph(run("side"))),
            cell(paragraph(run("South | West"))),
        ),
        ("<w:trPr><w:del w:id='1'/></w:trPr>", cell(paragraph(run("gone")))),
        (
            cell(item(70, 0, "x") + item(70, 0, "y")),
            cell("<w:p/>", "<w:vMerge/>"),
            cell(paragraph(run("z"))),
        ),
    )
    + paragraph(run("After it.")),
    table((cell(styled("Heading1", "Head") + paragraph(run("text"))), cell(INNER + "<w:p/>"))),
    f"<w:sdt><w:sdtContent>{paragraph(run('in a control'))}</w:sdtContent></w:sdt>",
)
"""Of documents, in what Python's reader knows."""


def level(at: int, form: str, pattern: str, more: str = "") -> str:
    return (
        f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>{more}'
        f'<w:lvlText w:val="{pattern}"/></w:lvl>'
    )


LISTS = {
    70: level(0, "decimal", "%1.")
    + level(1, "lowerLetter", "(%2)")
    + level(2, "decimal", "%1.%2.%3")
    + level(6, "upperRoman", "Article %7"),
    73: level(0, "decimalZero", "%1")
    + level(1, "none", "")
    + level(2, "upperRoman", "%1-%3", "<w:isLgl/>"),
}
AGAIN = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>'


def word_files() -> list[tuple[str, bytes]]:
    """Names and contents."""
    noted = _with_notes(
        paragraph(
            run("Words")
            + '<w:r><w:footnoteReference w:id="2"/></w:r>'
            + run(" and")
            + '<w:r><w:endnoteReference w:id="2"/></w:r>'
            + run(" more")
            + '<w:r><w:footnoteReference w:id="2"/></w:r>'
            + '<w:r><w:footnoteReference w:id="77"/></w:r>'
        )
    )
    return [
        *(("a.docx", _file(body)) for body in BODIES),
        ("a.docx", noted),
        ("a.docx", _strict(noted)),
        *(("cloud.zip", _moved(noted, main)) for main in ("word/document2.xml", "Doc/main.xml")),
    ]


def _file(body: str) -> bytes:
    document = word("A Title")
    numbering = document.part.numbering_part.element
    for key, levels in LISTS.items():
        made = f'<w:abstractNum {SPACES} w:abstractNumId="{key}">{levels}</w:abstractNum>'
        numbering.insert(0, parse_xml(made))
    for num, of, more in ((70, 70, ""), (72, 70, AGAIN), (73, 73, "")):
        made = f'<w:num {SPACES} w:numId="{num}"><w:abstractNumId w:val="{of}"/>{more}</w:num>'
        numbering.append(parse_xml(made))
    for style in OWN_STYLES:
        made = style.replace("<w:style", f"<w:style {SPACES}", 1)
        document.styles.element.append(parse_xml(made))
    root = parse_xml(f"<w:body {SPACES}>{body}</w:body>")
    for element in reversed(list(root)):
        document.element.body.insert(0, element)
    return saved(document)


def members_of(data: bytes) -> dict[str, bytes]:
    """The parts of an archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as whole:
        return {name: whole.read(name) for name in whole.namelist()}


def _with_notes(body: str) -> bytes:
    members = members_of(_file(body))
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    links = ""
    for name in ("footnote", "endnote"):
        notes = (
            f'<w:{name} w:id="0" w:type="separator">{paragraph(run("no"))}</w:{name}>'
            f'<w:{name} w:id="2">{paragraph(f"<w:r><w:{name}Ref/></w:r>" + run(f" The {name}."))}'
            f"{item(70, 1, 'listed')}</w:{name}>"
        )
        members[f"word/{name}s.xml"] = f"<w:{name}s {SPACES}>{notes}</w:{name}s>".encode()
        links += f'<Relationship Id="{name}" Type="{kind}/{name}s" Target="{name}s.xml"/>'
    rels = members["word/_rels/document.xml.rels"]
    members["word/_rels/document.xml.rels"] = rels.replace(
        b"</Relationships>", f"{links}</Relationships>".encode()
    )
    return archive(dict(members))


def _strict(data: bytes) -> bytes:
    """The same by the strict format's namespaces."""
    pairs = (
        ("wordprocessingml/2006/main", "wordprocessingml/main"),
        ("officeDocument/2006/relationships", "officeDocument/relationships"),
    )
    members: dict[str, str | bytes] = {}
    for name, content in members_of(data).items():
        for old, new in pairs:
            content = content.replace(
                f"schemas.openxmlformats.org/{old}".encode(), f"purl.oclc.org/ooxml/{new}".encode()
            )
        members[name] = content
    return archive(members)


def _moved(data: bytes, main: str) -> bytes:
    """The same with its main part elsewhere."""
    folder, _, base = main.rpartition("/")
    members: dict[str, str | bytes] = {}
    for name, content in members_of(data).items():
        if name in ("[Content_Types].xml", "_rels/.rels"):
            content = content.replace(b"word/", f"{folder}/".encode())
            content = content.replace(b"/document.xml", f"/{base}".encode())
        name = name.replace("word/", f"{folder}/").replace("/document.xml", f"/{base}")
        members[name] = content
    return archive(members)
