"""Malformed and odd HTTP/1.1, as a table: the bytes of a case, and what must come of them.

What a row expects is one of

  refused(s)    one answer of status s, and the connection ends: nothing behind it is read
  kept(s, …)    these answers, and the connection goes on: what follows is answered
  last(s, …)    these answers, the last of which ends the connection because the request asked so
  cut(s, …)     the peer sends no more after the bytes: these answers, then the end

Interim answers (100) do not count. `follow` is what a test sends behind the bytes of the first
three, and tells by its answer whether the connection went on.

Source: RFC 9112 (2022) sections 2.2, 3, 5, 6, 7, 9; RFC 9110 sections 4.2, 5.5, 5.6, 7.2, 7.8, 9,
10.1.1. Where both acceptance and refusal are allowed, the row says what this server does.
"""
import collections

Case = collections.namedtuple("Case", "name sent kind statuses")
cases = []

HEIGHT = "/v1/locales/l/height"
ROW = f"GET {HEIGHT}?x=1&y=1 HTTP/1.1"
POST = f"POST {HEIGHT} HTTP/1.1"
BODY = '{"points":[[1,1]]}'  # 18 bytes, 0x12
TYPE = "Content-Type: application/json"
CHUNKED = "Transfer-Encoding: chunked"
follow = f"GET {HEIGHT}?x=3&y=2 HTTP/1.1\r\nHost: follow\r\nConnection: close\r\n\r\n".encode()


def row(name, sent, expected):
    sent = sent if isinstance(sent, bytes) else sent.encode("latin-1")
    cases.append(Case(name, sent, *expected))


def refused(status):
    return "refused", (status,)


def kept(*statuses):
    return "kept", statuses


def last(*statuses):
    return "last", statuses


def cut(*statuses):
    return "cut", statuses


def lines(*all_lines):
    return "\r\n".join((*all_lines, "", ""))


def get(*fields):
    return lines("GET /livez HTTP/1.1", "Host: x", *fields)


def target(text):
    return lines(f"GET {text} HTTP/1.1", "Host: x")


def post(*fields, body=BODY):
    return lines(POST, "Host: x", TYPE, *fields) + body


def chunks(body, *fields):
    return lines(POST, "Host: x", TYPE, CHUNKED, *fields) + body


ONE = f"12\r\n{BODY}\r\n"  # the whole body as one chunk
END = "0\r\n\r\n"

# ---- the request line ----------------------------------------------------------------------------

row("plain GET", get(), kept(200))
row("plain POST", post("Content-Length: 18"), kept(200))
row("one empty line before it", "\r\n" + get(), kept(200))
row("two empty lines before it", "\r\n\r\n" + get(), refused(400))
row("a bare LF before it", "\n" + get(), refused(400))
row("a bare CR before it", "\r" + get(), refused(400))
row("a space before it", " " + get(), refused(400))
row("a tab before it", "\t" + get(), refused(400))
row("a NUL before it", "\0" + get(), refused(400))
row("a byte order mark before it", b"\xef\xbb\xbf" + get().encode(), refused(400))
row("two spaces after the method", lines("GET  /livez HTTP/1.1", "Host: x"), refused(400))
row("three spaces before the version", lines("GET /livez   HTTP/1.1", "Host: x"), refused(400))
row("a tab after the method", lines("GET\t/livez HTTP/1.1", "Host: x"), refused(400))
row("a tab before the version", lines("GET /livez\tHTTP/1.1", "Host: x"), refused(400))
row("a vertical tab after the method", lines("GET\v/livez HTTP/1.1", "Host: x"), refused(400))
row("a form feed before the version", lines("GET /livez\fHTTP/1.1", "Host: x"), refused(400))
row("a bare CR as a separator", lines("GET\r/livez HTTP/1.1", "Host: x"), refused(400))
row("a NUL as a separator", lines("GET\0/livez HTTP/1.1", "Host: x"), refused(400))
row("a no-break space as a separator", lines("GET\xa0/livez HTTP/1.1", "Host: x"), refused(400))
row("a space after the version", lines("GET /livez HTTP/1.1 ", "Host: x"), refused(400))
row("a tab after the version", lines("GET /livez HTTP/1.1\t", "Host: x"), refused(400))
row("a fourth word", lines("GET /livez HTTP/1.1 now", "Host: x"), refused(400))
row("a space in the target", lines("GET /livez /x HTTP/1.1", "Host: x"), refused(400))
row("no target", lines("GET HTTP/1.1", "Host: x"), refused(400))
row("an empty target", lines("GET  HTTP/1.1", "Host: x"), refused(400))
row("no method", lines("/livez HTTP/1.1", "Host: x"), refused(400))
row("an empty method", lines(" /livez HTTP/1.1", "Host: x"), refused(400))
row("only a method", lines("GET", "Host: x"), refused(400))
row("only a version", lines("HTTP/1.1", "Host: x"), refused(400))
row("a status line", lines("HTTP/1.1 200 OK", "Content-Length: 0"), refused(400))
row("a header line first", lines("Host: x", "GET /livez HTTP/1.1"), refused(400))
row("two request lines", lines("GET /livez HTTP/1.1", "GET /livez HTTP/1.1", "Host: x"),
    refused(400))
row("a bare LF after it", "GET /livez HTTP/1.1\nHost: x\r\n\r\n", refused(400))
row("CR CR LF after it", "GET /livez HTTP/1.1\r\r\nHost: x\r\n\r\n", refused(400))
row("LF CR after it", "GET /livez HTTP/1.1\n\rHost: x\r\n\r\n", refused(400))
row("only bare LF everywhere", "GET /livez HTTP/1.1\nHost: x\n\n", refused(400))
row("only bare CR everywhere", "GET /livez HTTP/1.1\rHost: x\r\r" + get(), refused(400))
row("a next-line byte after it", "GET /livez HTTP/1.1\x85Host: x\r\n\r\n", refused(400))
row("a quoted target", lines('GET "/livez" HTTP/1.1', "Host: x"), refused(400))

# ---- versions ------------------------------------------------------------------------------------

for version, expected in (
        ("HTTP/1.2", refused(505)), ("HTTP/1.9", refused(505)), ("HTTP/2.0", refused(505)),
        ("HTTP/3.0", refused(505)), ("HTTP/0.9", refused(505)), ("HTTP/0.0", refused(505)),
        ("HTTP/9.9", refused(505)), ("HTTP/2", refused(400)), ("HTTP/1", refused(400)),
        ("HTTP/1.", refused(400)), ("HTTP/.1", refused(400)), ("HTTP/1.10", refused(400)),
        ("HTTP/11.1", refused(400)), ("HTTP/01.1", refused(400)), ("HTTP/1.01", refused(400)),
        ("HTTP/1,1", refused(400)), ("HTTP/1.1.1", refused(400)), ("HTTP/+1.1", refused(400)),
        ("HTTP/-1.1", refused(400)), ("HTTP/1.-1", refused(400)), ("HTTP/1.a", refused(400)),
        ("HTTP/1. 1", refused(400)), ("HTTP/ 1.1", refused(400)), ("HTTP 1.1", refused(400)),
        ("http/1.1", refused(400)), ("Http/1.1", refused(400)), ("HTTPS/1.1", refused(400)),
        ("HTP/1.1", refused(400)), ("XTTP/1.1", refused(400)), ("HTTP\\1.1", refused(400)),
        ("RTSP/1.0", refused(400)), ("ICE/1.0", refused(400)), ("SIP/2.0", refused(400)),
        ("HTTP/\xb2.1", refused(400)), ("HTTP/1.1\0", refused(400)), ("HTTP/1.1;", refused(400))):
    row(f"version {version!r}", lines(f"GET /livez {version}", "Host: x"), expected)
row("HTTP/0.9 without a version", "GET /livez\r\n\r\n", refused(400))
row("HTTP/1.0 without Host", lines("GET /livez HTTP/1.0"), last(200))
row("HTTP/1.0 that keeps alive", lines("GET /livez HTTP/1.0", "Connection: keep-alive"), kept(200))

# ---- methods -------------------------------------------------------------------------------------

for method, expected in (
        ("BREW", refused(501)), ("TRACE", refused(501)), ("TRACK", refused(501)),
        ("PROPFIND", refused(501)), ("MKCOL", refused(501)), ("SOURCE", refused(501)),
        ("M-SEARCH", refused(501)), ("PRI", refused(501)), ("QUERY", refused(501)),
        ("DESCRIBE", refused(501)), ("SETUP", refused(501)), ("PLAY", refused(501)),
        ("get", refused(501)), ("Get", refused(501)), ("gET", refused(501)),
        ("GETT", refused(501)), ("GE", refused(501)), ("G", refused(501)),
        ("GET!", refused(501)), ("!", refused(501)), ("'GET'", refused(501)),
        ("G" * 200, refused(501)), ("~^`|.*&%$#!", refused(501)),
        ("GE(T", refused(400)), ("GE,T", refused(400)), ("GE:T", refused(400)),
        ("GE/T", refused(400)), ("GE@T", refused(400)), ("GE[T", refused(400)),
        ("GE{T", refused(400)), ("GE\\T", refused(400)), ('GE"T', refused(400)),
        ("GE\0T", refused(400)), ("GE\x7fT", refused(400)), ("G\xc9T", refused(400))):
    row(f"method {method[:20]!r}", lines(f"{method} /livez HTTP/1.1", "Host: x"), expected)
row("CONNECT", lines("CONNECT x:443 HTTP/1.1", "Host: x:443"), refused(501))
row("DELETE of what cannot be deleted", lines("DELETE /livez HTTP/1.1", "Host: x"), kept(405))
row("PATCH of what cannot be patched", lines("PATCH /livez HTTP/1.1", "Host: x"), kept(405))
row("RTSP's OPTIONS", lines("OPTIONS rtsp://x/a RTSP/1.0", "CSeq: 1"), refused(400))

# ---- targets -------------------------------------------------------------------------------------

for text, expected in (
        ("/", kept(200)), ("//", kept(404)), ("/livez/", kept(404)), ("//livez", kept(404)),
        ("/./livez", kept(404)), ("/../livez", kept(404)), ("/nope", kept(404)),
        ("/%6civez", kept(200)), ("/%6Civez", kept(200)), ("/livez%2f", kept(404)),
        ("/%2e%2e/livez", kept(404)), ("/%2flivez", kept(404)), ("/livez%20", kept(404)),
        ("/livez%0d%0aX:%201", kept(404)), ("/livez%c0%ae", kept(404)), ("/%u006c", kept(400)),
        ("/%", kept(400)), ("/%4", kept(400)), ("/%zz", kept(400)), ("/%4g", kept(400)),
        ("/%%34", kept(400)), ("/livez%00", kept(400)), ("/%-1", kept(400)), ("/%+1", kept(400)),
        (HEIGHT + "?x=%", kept(400)), (HEIGHT + "?x=1&y=%3", kept(400)),
        (HEIGHT + "?x=%00&y=1", kept(400)), (HEIGHT + "?%zz=1&x=1&y=1", kept(400)),
        (HEIGHT + "?x=%31&y=1", kept(200)), (HEIGHT + "?x=1&y=1&", kept(200)),
        (HEIGHT + "?&&x=1&&y=1", kept(200)), (HEIGHT + "?x=1?&y=1", kept(400)),
        (HEIGHT + "?x=1;y=1", kept(400)), (HEIGHT + "?", kept(400)),
        (HEIGHT + "?x=1&x=2&y=1", kept(400)), (HEIGHT + "?x=+1&y=1", kept(400)),
        ("/livez#top", refused(400)), ("/#", refused(400)), ("/livez?a#b", refused(400)),
        ("/li\xe9z", refused(400)), ("/\xc3\xa9", refused(400)), ("/\xff", refused(400)),
        ("/a\0b", refused(400)), ("/a\x01b", refused(400)), ("/a\x1bb", refused(400)),
        ("/a\x7fb", refused(400)), ("/a\rb", refused(400)), ("/a\tb", refused(400)),
        ("*", kept(400)), ("**", kept(400)), ("*/livez", kept(400)),
        ("livez", refused(400)), ("?x=1", refused(400)), ("x:80", refused(400)),
        ("http://x/livez", kept(200)), ("HTTP://x/livez", kept(200)),
        ("https://x:443/livez", kept(200)), ("http://other/livez", kept(200)),
        ("http://x", kept(200)), ("http://x?a", kept(400)), ("http://[::1]:80/livez", kept(200)),
        ("http:///livez", kept(400)), ("http://", kept(400)), ("http:/livez", refused(400)),
        ("http:livez", refused(400)), ("://x/livez", refused(400)), ("//x/livez", kept(404)),
        ("ftp://x/livez", kept(400)), ("file:///etc/passwd", kept(400)),
        ("javascript:alert(1)", refused(400)), ("rtsp://x/livez", kept(400)),
        ("/../../../../etc/passwd", kept(404)), ("\\livez", refused(400))):
    row(f"target {text!r}", target(text), expected)
row("OPTIONS *", lines("OPTIONS * HTTP/1.1", "Host: x"), kept(204))
row("OPTIONS * with a body", lines("OPTIONS * HTTP/1.1", "Host: x", "Content-Length: 4") + "abcd",
    kept(204))
row("OPTIONS of nothing", lines("OPTIONS /nope HTTP/1.1", "Host: x"), kept(404))
row("HEAD *", lines("HEAD * HTTP/1.1", "Host: x", "Connection: close"), last(400))
for text in ("http://u@x/livez", "http://u:p@x/livez", "http://@/livez", "http://x:abc/livez",
             "http://x:99999/livez", "http://[::1/livez", "http://%zz/livez", "http://:80/livez"):
    row(f"target {text!r}", target(text), kept(400))
row("target with an address", target("http://[::1]:80/livez"), kept(200))

# ---- Host ----------------------------------------------------------------------------------------

row("no Host", lines("GET /livez HTTP/1.1"), refused(400))
row("no Host but other fields", lines("GET /livez HTTP/1.1", "X: 1", "Y: 2"), refused(400))
row("no Host, absolute target", lines("GET http://x/livez HTTP/1.1"), refused(400))
row("two Hosts", get("Host: x"), refused(400))
row("two different Hosts", get("Host: y"), refused(400))
row("two Hosts in other letters", get("hOST: x"), refused(400))
row("two Hosts, HTTP/1.0", lines("GET /livez HTTP/1.0", "Host: x", "Host: x"), refused(400))
row("Host after two hundred bytes of others",
    lines("GET /livez HTTP/1.1", *(f"X-{i}: {'a' * 15}" for i in range(10)), "Host: x"), kept(200))
for value, expected in (
        ("", kept(200)), (" ", kept(200)), ("example.com", kept(200)), ("x:80", kept(200)),
        ("x:", kept(200)), ("127.0.0.1:7420", kept(200)), ("[::1]", kept(200)),
        ("[::1]:7420", kept(200)), ("\tx\t", kept(200)), ("x_y", kept(200)), ("a%41", kept(200)),
        ("x y", refused(400)), ("x\ty", refused(400)), ("x, y", refused(400)),
        ("x,y", refused(400)), ("x/y", refused(400)), ("x?y", refused(400)),
        ("x#y", refused(400)), ("u@x", refused(400)), ("x\\y", refused(400)),
        ('"x"', refused(400)), ("<x>", refused(400)), ("http://x", refused(400)),
        ("x\0", refused(400)), ("\0", refused(400)), ("x\x01", refused(400)),
        ("x\x7f", refused(400)), ("x\xe9", refused(400)), ("x\r", refused(400)),
        ("x:80 ", kept(200)), ("x:99 99", refused(400))):
    row(f"Host {value!r}", lines("GET /livez HTTP/1.1", f"Host: {value}"), expected)
for value in ("x:abc", "[::1", "]", "[]", "[x]", "::1", "a:b:c", "x:80:80", ":80", "x:99999", "x:-1",
              "a|b", "x^y", "`x`", "{x}", "%zz", "x%", "[::1]x", "[::1%25lo]", "[v1.x]", "x: 80"):
    row(f"Host {value!r}", lines("GET /livez HTTP/1.1", f"Host: {value}"), refused(400))
for value in ("[::1]:80", "[::ffff:1.2.3.4]", "x:", "x:0", "x:65535", "x%41:1", "a_b-c.~!$&'()*+;="):
    row(f"Host {value!r}", lines("GET /livez HTTP/1.1", f"Host: {value}"), kept(200))
row("two Content-Types", post("Content-Length: 18", "Content-Type: text/plain"), kept(400))
row("two Authorizations", get("Authorization: Bearer a", "Authorization: Bearer b"), kept(400))

# ---- fields --------------------------------------------------------------------------------------

for text, expected in (
        ("X: 1", kept(200)), ("X:1", kept(200)), ("X:", kept(200)), ("X: ", kept(200)),
        ("X:\t1\t", kept(200)), ("X: a\tb", kept(200)), ("X: \xe9", kept(200)),
        ("X: \xff\x80", kept(200)), ("X: :::", kept(200)), ("!#$%&'*+-.^_`|~9: 1", kept(200)),
        ("X : 1", refused(400)), ("X\t: 1", refused(400)), ("X\v: 1", refused(400)),
        (" X: 1", refused(400)), ("\tX: 1", refused(400)), (": 1", refused(400)),
        (":", refused(400)), (" : 1", refused(400)), ("X", refused(400)), ("X 1", refused(400)),
        (" ", refused(400)), ("\t", refused(400)), ("X-A\0: 1", refused(400)),
        ("X-A: a\0b", refused(400)), ("X-A: \x01", refused(400)), ("X-A: \x08", refused(400)),
        ("X-A: \v", refused(400)), ("X-A: \f", refused(400)), ("X-A: \x1b[2J", refused(400)),
        ("X-A: \x1f", refused(400)), ("X-A: \x7f", refused(400)), ("X-A: a\rb", refused(400)),
        ("X-A: a\r", refused(400)), ("X\r: a", refused(400)), ("X(A: 1", refused(400)),
        ("X)A: 1", refused(400)), ("X,A: 1", refused(400)), ("X;A: 1", refused(400)),
        ("X<A: 1", refused(400)), ("X>A: 1", refused(400)), ("X=A: 1", refused(400)),
        ("X?A: 1", refused(400)), ("X@A: 1", refused(400)), ("X[A: 1", refused(400)),
        ("X]A: 1", refused(400)), ("X{A: 1", refused(400)), ("X}A: 1", refused(400)),
        ("X/A: 1", refused(400)), ("X\\A: 1", refused(400)), ('X"A: 1', refused(400)),
        ("X\xe9: 1", refused(400)), ("X\x7f: 1", refused(400)), ("\xef\xbb\xbfX: 1", refused(400)),
        ("X: 1\r\n Y: 2", refused(400)), ("X: 1\r\n\t2", refused(400)),
        ("X:\r\n 1", refused(400)), ("X: 1\r\n ", refused(400)), ("X: 1\r\n \r\n 2", refused(400)),
        ("X: 1\n", refused(400)), ("X: 1\nY: 2", refused(400)), ("X: 1\n Y: 2", refused(400)),
        ("X: 1\rY: 2", refused(400)), ("X: 1\r\r\nY: 2", refused(400)),
        ("X: 1\n\rY: 2", refused(400)), ("GET /livez HTTP/1.1", refused(400))):
    row(f"field {text!r}", get(text), expected)
row("a folded first field", lines("GET /livez HTTP/1.1", " Host: x"), refused(400))
row("a folded Host", lines("GET /livez HTTP/1.1", "Host:", " x"), refused(400))
row("a bare LF as the empty line", "GET /livez HTTP/1.1\r\nHost: x\r\n\n", refused(400))
row("a bare CR as the empty line", "GET /livez HTTP/1.1\r\nHost: x\r\n\r" + get(), refused(400))
row("a space in the empty line", "GET /livez HTTP/1.1\r\nHost: x\r\n \r\n", refused(400))
row("the same field a few times", get("X: 1", "X: 2", "x: 3"), kept(200))

# ---- Content-Length ------------------------------------------------------------------------------

for value, expected in (
        ("18", kept(200)), ("018", kept(200)), ("0000000000000018", kept(200)),
        ("\t18 ", kept(200)), ("+18", refused(400)), ("-18", refused(400)), ("-0", refused(400)),
        ("0x12", refused(400)), ("1e1", refused(400)), ("18.0", refused(400)), ("18,", refused(400)),
        ("18, 18", refused(400)), ("18,18", refused(400)), ("18 18", refused(400)),
        ("18;", refused(400)), ('"18"', refused(400)), ("'18'", refused(400)), ("", refused(400)),
        (" ", refused(400)), ("one", refused(400)), ("18a", refused(400)), ("a18", refused(400)),
        ("1_8", refused(400)), ("1'8", refused(400)), ("18\0", refused(400)), ("\v18", refused(400)),
        ("18\f", refused(400)), ("\xb918", refused(400)), ("NaN", refused(400)),
        ("Infinity", refused(400)), ("18\r\n 0", refused(400)), ("1\r\n 8", refused(400)),
        ("99999999", refused(413)), ("18446744073709551615", refused(413)),
        ("18446744073709551616", refused(413)), ("18446744073709551634", refused(413)),
        ("9223372036854775808", refused(413)), ("9" * 400, refused(413))):
    row(f"Content-Length {value[:24]!r}", post(f"Content-Length: {value}"), expected)
row("two equal lengths", post("Content-Length: 18", "Content-Length: 18"), refused(400))
row("two unequal lengths", post("Content-Length: 18", "Content-Length: 0"), refused(400))
row("two lengths apart", post("Content-Length: 18", "X: 1", "content-length: 19"), refused(400))
row("a length and its folded other", post("Content-Length: 18", "X: 1", " Content-Length: 0"),
    refused(400))
row("a space before the length's colon", post("Content-Length : 18"), refused(400))
row("a length with a bare LF before it", post("X: 1\nContent-Length: 18"), refused(400))
row("Content_Length is another field", post("Content_Length: 99", "Content-Length: 18"), kept(200))
row("no length where a body is needed", post(body=""), kept(400))
row("length 0 where a body is needed", post("Content-Length: 0", body=""), kept(400))
row("a GET with a body", get("Content-Length: 4") + "abcd", kept(200))
row("a GET with a body that looks like a request", get(f"Content-Length: {len(get())}") + get(),
    kept(200))
row("a length on an unknown path", lines("POST /nope HTTP/1.1", "Host: x", "Content-Length: 5")
    + "hello", kept(404))
row("a length on a wrong method", lines("POST /livez HTTP/1.1", "Host: x", "Content-Length: 5")
    + "hello", kept(405))
row("a huge length on an unknown path",
    lines("POST /nope HTTP/1.1", "Host: x", "Content-Length: 99999999"), refused(404))
row("a length on HTTP/1.0", lines(f"POST {HEIGHT} HTTP/1.0", TYPE, "Content-Length: 18") + BODY,
    last(200))

# ---- Transfer-Encoding ---------------------------------------------------------------------------

row("chunked", chunks(ONE + END), kept(200))
for value, expected in (
        ("Chunked", kept(200)), ("CHUNKED", kept(200)), ("\tchunked ", kept(200)),
        ("", refused(400)), (" ", refused(400)), ("gzip", refused(501)),
        ("identity", refused(501)), ("gzip, chunked", refused(501)),
        ("chunked, gzip", refused(501)), ("chunked, chunked", refused(501)),
        ("chunked, identity", refused(501)), ("identity, chunked", refused(501)),
        ("chunked;q=1", refused(501)), ("chunked;foo", refused(501)), (",chunked", refused(501)),
        ("chunked,", refused(501)), (", ,chunked", refused(501)), ("xchunked", refused(501)),
        ("chunkedx", refused(501)), ("chunke", refused(501)), ("chunk", refused(501)),
        ('"chunked"', refused(501)), ("'chunked'", refused(501)), ("chunked chunked", refused(501)),
        ("x chunked", refused(501)), ("c h u n k e d", refused(501)), ("\vchunked", refused(400)),
        ("chunked\v", refused(400)), ("\x01chunked", refused(400)), ("chunked\0", refused(400)),
        ("\xa0chunked", refused(501)), ("chunKed\x7f", refused(400)),
        ("\r\n chunked", refused(400)), ("chunked\r\n ", refused(400)),
        ("x\r\n chunked", refused(400)), ("chunked\r\n , gzip", refused(400)),
        ("chunked\rX: 1", refused(400)), ("chunked\nX: 1", refused(400))):
    row(f"Transfer-Encoding {value!r}",
        lines(POST, "Host: x", TYPE, f"Transfer-Encoding: {value}") + ONE + END, expected)
row("chunked in two fields", chunks(ONE + END, CHUNKED), refused(400))
row("chunked and gzip in two fields", chunks(ONE + END, "Transfer-Encoding: gzip"), refused(400))
row("chunked and nothing in two fields", chunks(ONE + END, "Transfer-Encoding:"), refused(400))
row("a space before its colon", lines(POST, "Host: x", TYPE, "Transfer-Encoding : chunked")
    + ONE + END, refused(400))
row("chunked behind a fold", lines(POST, "Host: x", TYPE, "X: 1", " Transfer-Encoding: chunked")
    + ONE + END, refused(400))
row("Transfer_Encoding is another field", post("Transfer_Encoding: chunked", "Content-Length: 18"),
    kept(200))
row("length, then chunked", post("Content-Length: 18", CHUNKED, body=ONE + END), refused(400))
row("chunked, then length", post(CHUNKED, "Content-Length: 18", body=ONE + END), refused(400))
row("length 0 and chunked", post("Content-Length: 0", CHUNKED, body=END), refused(400))
row("length and gzip", post("Content-Length: 18", "Transfer-Encoding: gzip"), refused(501))
row("chunked on HTTP/1.0", lines(f"POST {HEIGHT} HTTP/1.0", "Host: x", TYPE, CHUNKED) + ONE + END,
    refused(400))
row("chunked and keep-alive on HTTP/1.0",
    lines(f"POST {HEIGHT} HTTP/1.0", TYPE, CHUNKED, "Connection: keep-alive") + ONE + END,
    refused(400))
row("chunked GET", get(CHUNKED) + "4\r\nabcd\r\n" + END, kept(200))
row("chunked with an unknown path", lines("POST /nope HTTP/1.1", "Host: x", CHUNKED) + ONE + END,
    refused(404))
row("TE is another field", post("TE: trailers, chunked", "Content-Length: 18"), kept(200))
row("Content-Encoding is not understood", post("Content-Encoding: gzip", "Content-Length: 18"),
    kept(415))

# ---- chunks --------------------------------------------------------------------------------------

row("chunks of one byte", chunks("".join(f"1\r\n{c}\r\n" for c in BODY) + END), kept(200))
row("capital digits", chunks("12\r\n" + BODY + "\r\n" + END), kept(200))
row("leading zeros", chunks("000012\r\n" + BODY + "\r\n" + END), kept(200))
row("an end of many zeros", chunks(ONE + "0000\r\n\r\n"), kept(200))
row("no chunk but the last", chunks(END), kept(400))
row("an extension", chunks(f"12;a=b\r\n{BODY}\r\n" + END), kept(200))
row("an extension without a value", chunks(f"12;a\r\n{BODY}\r\n" + END), kept(200))
row("a quoted extension", chunks(f'12;a="b c;d"\r\n{BODY}\r\n' + END), kept(200))
row("two extensions", chunks(f"12;a=b;c=d\r\n{BODY}\r\n" + END), kept(200))
row("many extensions", chunks(f"12;a=1;b=2;c=3\r\n{BODY}\r\n" + END), kept(200))
row("a quoted pair in an extension", chunks(f'12;a="b\\"c"\r\n{BODY}\r\n' + END), kept(200))
row("a space before an extension", chunks(f"12 ;a=b\r\n{BODY}\r\n" + END), kept(200))
row("spaces around an extension", chunks(f"12; a\t= b ;c\r\n{BODY}\r\n" + END), kept(200))
row("an extension of the last", chunks(ONE + "0;a=b\r\n\r\n"), kept(200))
for size, what in (
        ("", "empty"), ("zz", "no number"), ("-12", "negative"), ("+12", "with a plus"),
        ("0x12", "with 0x"), (" 12", "after a space"), ("\t12", "after a tab"), ("12 ", "a space behind"),
        ("12\t", "a tab behind"), ("1 2", "a space inside"), ("12h", "with an h"), ("12,", "a comma"),
        ("12.0", "a point"), ("12;=b", "an extension without a name"),
        ("12;a=b;", "an empty extension"), ("12;a ", "a space at the end of an extension"), ("\n12", "a bare LF before"),
        ("12\r", "two CR"), ("12\0", "a NUL"), ("\v12", "a vertical tab"), ("12\x7f", "a DEL"),
        ("\xb2", "a superscript"), (";a=b", "an extension alone"), ("12;a\0", "a NUL in an extension"),
        ("12;a\rb", "a bare CR in an extension"), ("12;a\x01", "a control in an extension"),
        ("12;\x7f", "a DEL in an extension"), ("12;a=\n", "a bare LF in an extension"),
        ("1_2", "an underscore"), ("'12'", "quoted"), ("0" * 16 + "12", "of 18 digits"),
        ("f" * 16, "of 64 bits"), ("1" + "0" * 16, "beyond 64 bits"),
        ("8000000000000000", "of bit 63"), ("f" * 17, "of 68 bits"),
        ("10000000000000012", "that is 18 modulo 2^64"), ("1" + "0" * 40, "beyond all")):
    row(f"chunk size {what}", chunks(f"{size}\r\n{BODY}\r\n" + END), refused(400))
row("chunk size beyond the body's limit", chunks(f"7fffffff\r\n{BODY}"), refused(413))
row("chunk size of 2^60 - 1", chunks(f"fffffffffffffff\r\n{BODY}"), refused(413))
row("chunk sizes that overflow together",
    chunks(f"12\r\n{BODY}\r\nfffffffffffffff\r\n"), refused(413))
row("a bare LF behind the size", chunks(f"12\n{BODY}\r\n" + END), refused(400))
row("a bare CR behind the size", chunks(f"12\r{BODY}\r\n" + END), refused(400))
row("a bare LF behind the data", chunks(f"12\r\n{BODY}\n" + END), refused(400))
row("a bare CR behind the data", chunks(f"12\r\n{BODY}\r" + END), refused(400))
row("nothing behind the data", chunks(f"12\r\n{BODY}" + END), refused(400))
row("a space behind the data", chunks(f"12\r\n{BODY} \r\n" + END), refused(400))
row("a size too small", chunks(f"11\r\n{BODY}\r\n" + END), refused(400))
row("a size too large", chunks(f"13\r\n{BODY}\r\n" + END), refused(400))
row("an empty line before the size", chunks("\r\n" + ONE + END), refused(400))
row("a bare LF behind the last size", chunks(ONE + "0\n\r\n"), refused(400))
row("a bare LF as the end", chunks(ONE + "0\r\n\n"), refused(400))
row("a bare CR as the end", chunks(ONE + "0\r\n\rX"), refused(400))
row("more framing than body", chunks(f"1;{'a' * 17000}\r\nx\r\n" + END), refused(400))
row("a body that is not JSON", chunks("4\r\nabcd\r\n" + END), kept(400))
row("no chunks but a plain body", chunks(BODY), refused(400))

# ---- trailers ------------------------------------------------------------------------------------

for text, expected in (
        ("X: 1\r\n", kept(200)), ("X: 1\r\nY: 2\r\n", kept(200)), ("X:\r\n", kept(200)),
        ("Content-Length: 5\r\n", kept(200)), ("Transfer-Encoding: gzip\r\n", kept(200)),
        ("Host: other\r\n", kept(200)), ("Authorization: Bearer x\r\n", kept(200)),
        ("X : 1\r\n", refused(400)), (": 1\r\n", refused(400)), ("X\r\n", refused(400)),
        (" X: 1\r\n", refused(400)), ("X: 1\r\n 2\r\n", refused(400)), ("X: 1\n", refused(400)),
        ("X: a\0\r\n", refused(400)), ("X: a\x7f\r\n", refused(400)), ("X: a\rb\r\n", refused(400)),
        ("X\xe9: 1\r\n", refused(400)), ("X: 1\r\r\n", refused(400)), ("\0: 1\r\n", refused(400)),
        ("".join(f"X-{i}: 1\r\n" for i in range(65)), refused(431)),
        (f"X: {'a' * 20000}\r\n", refused(431))):
    row(f"trailer {text[:30]!r}", chunks(f"{ONE}0\r\n{text}\r\n"), expected)

# ---- Expect --------------------------------------------------------------------------------------

row("Expect: 100-continue", post("Expect: 100-continue", "Content-Length: 18"), kept(200))
row("Expect: 100-CONTINUE", post("Expect: 100-CONTINUE", "Content-Length: 18"), kept(200))
row("Expect: 100-continue without a body", get("Expect: 100-continue"), kept(200))
row("Expect: 100-continue, chunked", chunks(ONE + END, "Expect: 100-continue"), kept(200))
row("Expect: 100-continue on HTTP/1.0", lines(f"POST {HEIGHT} HTTP/1.0", TYPE, "Content-Length: 18",
                                             "Expect: 100-continue") + BODY, last(200))
row("Expect: 100-continue on an unknown path",
    lines("POST /nope HTTP/1.1", "Host: x", "Expect: 100-continue", "Content-Length: 18") + BODY,
    refused(404))
row("Expect: 100-continue beyond the limit",
    post("Expect: 100-continue", "Content-Length: 99999999", body=""), refused(413))
row("Expect: 200-ok", get("Expect: 200-ok"), kept(417))
row("Expect: 100-continue, x", get("Expect: 100-continue, x"), kept(417))
row("Expect: 100-continue;a=b", get("Expect: 100-continue;a=b"), kept(417))
row("Expect of something with a body", post("Expect: something", "Content-Length: 18"), kept(417))
row("Expect of something with chunks", chunks(ONE + END, "Expect: something"), refused(417))
row("an empty Expect", get("Expect:"), kept(417))

# ---- Connection, Upgrade -------------------------------------------------------------------------

for text, expected in (
        ("close", last(200)), ("Close", last(200)), ("CLOSE", last(200)),
        ("keep-alive", kept(200)), ("Keep-Alive", kept(200)), ("close, keep-alive", last(200)),
        ("keep-alive, close", last(200)), ("x, close", last(200)), ("close,x", last(200)),
        ("", kept(200)), (",", kept(200)), ("x", kept(200)), ("closed", kept(200)),
        ("Host", kept(200)), ("te", kept(200)), ("upgrade", kept(200)),
        ("upgrade, close", last(200))):
    row(f"Connection {text!r}", get(f"Connection: {text}"), expected)
row("Connection in two fields", get("Connection: keep-alive", "Connection: close"), last(200))
row("Upgrade: websocket",
    get("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="), kept(200))
row("Upgrade: h2c", get("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c",
                        "HTTP2-Settings: AAMAAABkAAQAAP__"), kept(200))
row("Upgrade: TLS/1.3", get("Connection: Upgrade", "Upgrade: TLS/1.3"), kept(200))
row("Upgrade with a body", post("Connection: Upgrade", "Upgrade: x", "Content-Length: 18"),
    kept(200))
row("Upgrade without Connection", get("Upgrade: h2c"), kept(200))
row("Proxy-Connection counts as Connection", get("Proxy-Connection: close"), last(200))
row("Connection: close with a request behind it", get("Connection: close") + get(), last(200))
row("Keep-Alive: max=0", get("Keep-Alive: timeout=0, max=0"), kept(200))

# ---- several requests in one stream --------------------------------------------------------------

row("three in one", get() + get() + get(), kept(200, 200, 200))
row("an error between two", get() + target("/nope") + get(), kept(200, 404, 200))
row("a broken one between two", get() + get("X : 1") + get(), ("refused", (200, 400)))
row("a body, then another", post("Content-Length: 18") * 2, kept(200, 200))
row("chunks, then a body", chunks(ONE + END) + post("Content-Length: 18"), kept(200, 200))
row("an empty line between two", get() + "\r\n" + get(), kept(200, 200))
row("a bare LF between two", get() + "\n" + get(), ("refused", (200, 400)))
row("a body one byte longer than its length", post("Content-Length: 17"), ("refused", (400, 400)))
row("a body longer by a word", post("Content-Length: 18", body=BODY + "GARBAGE "),
    ("refused", (200, 400)))
row("a request in a body", post(f"Content-Length: {len(get())}", body=get()), kept(400))
row("a request in a chunk", chunks(f"{len(get()):x}\r\n{get()}\r\n" + END), kept(400))
row("a request behind chunks that end early", chunks(END + get()), kept(400, 200))
row("a refused body before another", lines("POST /nope HTTP/1.1", "Host: x", "Content-Length: 18")
    + BODY + get(), kept(404, 200))
row("a HEAD, then a GET", lines("HEAD /livez HTTP/1.1", "Host: x") + get("Connection: close"),
    last(200, 200))
row("nothing but garbage behind", get() + "\0\1\2\3", ("refused", (200, 400)))
row("CL.TE: the rest is no request", post("Content-Length: 6", CHUNKED, body=END + "G"),
    refused(400))
row("TE.CL: the rest is no request",
    post("Content-Length: 4", CHUNKED, body="5c\r\nGPOST / HTTP/1.1\r\n\r\n" + END), refused(400))
row("TE.TE: two codings", lines(POST, "Host: x", CHUNKED, "Transfer-encoding: cow") + ONE + END,
    refused(400))

# ---- limits --------------------------------------------------------------------------------------

row("a target of 8192 bytes", target("/" + "a" * 8191), kept(404))
row("a target of 8193 bytes", target("/" + "a" * 8192), refused(414))
row("a target of 20000 bytes", target("/" + "a" * 19999), refused(414))
row("a request line without end", "GET /" + "a" * 20000, refused(414))
row("a query of 8193 bytes", target("/livez?" + "a" * 8186), refused(414))
row("64 fields", get(*(f"X-{i}: 1" for i in range(63))), kept(200))
row("65 fields", get(*(f"X-{i}: 1" for i in range(64))), refused(431))
row("1000 fields", get(*("X: 1" for _ in range(1000))), refused(431))
row("a head of 16384 bytes", get("X: " + "a" * (16384 - len(get()) - 5)), kept(200))
row("a head of 16385 bytes", get("X: " + "a" * (16385 - len(get()) - 5)), refused(431))
row("a field without end", "GET /livez HTTP/1.1\r\nHost: x\r\nX: " + "a" * 20000, refused(431))
row("a field name without end", "GET /livez HTTP/1.1\r\nHost: x\r\n" + "a" * 20000, refused(431))
row("a path of 40 segments", target("/a" * 40), kept(404))
row("a query of 2000 items", target(HEIGHT + "?" + "x&" * 2000), kept(400))

# ---- other protocols -----------------------------------------------------------------------------

row("HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", refused(505))
row("HTTP/2's preface and settings",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", refused(505))
row("TLS ClientHello", bytes.fromhex("16030100450100004103035f0a") + bytes(range(64)), refused(400))
row("SSL 2 hello", bytes.fromhex("802e0103010015000000100100"), refused(400))
row("SSH", "SSH-2.0-OpenSSH_9.2\r\n", refused(400))
row("SMTP", "EHLO x\r\nMAIL FROM:<a@b>\r\n", refused(400))
row("FTP", "USER anonymous\r\n", refused(400))
row("SOCKS 4", b"\x04\x01\x00\x50\x7f\x00\x00\x01\0", refused(400))
row("SOCKS 5", b"\x05\x01\x00", refused(400))
row("PROXY protocol 1", "PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n" + get(), refused(400))
row("PROXY protocol 2", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + bytes(12), refused(400))
row("Redis", "*1\r\n$4\r\nPING\r\n", refused(400))
row("memcached", "stats\r\n", refused(400))
row("a Minecraft ping", b"\xfe\x01", refused(400))
row("DNS over TCP", bytes.fromhex("001d0001010000010000000000000377777707") + b"example\0", refused(400))
row("SMB", b"\0\0\0\x54\xffSMBr", refused(400))
row("RDP", bytes.fromhex("0300001302e00000000000010008000b000000"), refused(400))
row("JSON", '{"method":"GET"}\r\n', refused(400))
row("a shell", "\x1b[A\r\n", refused(400))
row("NULs", bytes(64), refused(400))

# ---- peers that stop -----------------------------------------------------------------------------

row("nothing at all", b"", cut())
row("a method", "GET", cut(400))
row("half a request line", "GET /livez HT", cut(400))
row("no empty line", "GET /livez HTTP/1.1\r\nHost: x\r\n", cut(400))
row("only the empty line's CR", "GET /livez HTTP/1.1\r\nHost: x\r\n\r", cut(400))
row("a request, then the end", get(), cut(200))
row("a request and half of the next", get() + "GET /li", cut(200, 400))
row("a body too short", post("Content-Length: 19"), cut(400))
row("a head without its body", post("Content-Length: 18", body=""), cut(400))
row("no last chunk", chunks(ONE), cut(400))
row("half a chunk", chunks("12\r\n{"), cut(400))
row("no end of the trailers", chunks(ONE + "0\r\nX: 1\r\n"), cut(400))
row("no end after the last chunk", chunks(ONE + "0\r\n"), cut(400))
row("an awaited body that never comes", post("Expect: 100-continue", "Content-Length: 18", body=""),
    cut(400))
row("an empty line alone", "\r\n", cut(400))
