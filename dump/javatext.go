package dump

import (
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Charset is how text is put into bytes on stdout. A JVM takes it from the locale.
type Charset int

// The charsets a JVM's stdout has under the common locales.
const (
	UTF8   Charset = iota
	ASCII          // characters above 127 are printed as question marks
	Latin1         // characters above 255 are printed as question marks
)

// LocaleCharset returns the charset that a JVM would print with in this process's environment.
func LocaleCharset() Charset {
	locale := ""
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale = os.Getenv(name); locale != "" {
			break
		}
	}
	language, codeset, has := strings.Cut(locale, ".")
	codeset, _, _ = strings.Cut(codeset, "@")
	codeset = strings.ToLower(strings.ReplaceAll(codeset, "-", ""))
	switch {
	case codeset == "utf8":
		return UTF8
	case language == "" || language == "C" || language == "POSIX" || codeset == "ansi_x3.41968" || codeset == "ascii":
		return ASCII
	case codeset == "iso88591" || !has:
		return Latin1
	default:
		return UTF8
	}
}

// appendText appends the bytes of a Java string that was made of b as UTF-8, in the charset. What is no UTF-8 is
// replaced as Java replaces it: one U+FFFD for the longest prefix of a character that is cut off or goes wrong, and
// one for a whole surrogate.
func (c Charset) appendText(dst, b []byte) []byte {
	if c == UTF8 && utf8.Valid(b) {
		return append(dst, b...)
	}
	for len(b) > 0 {
		ascii := 0
		for ascii < len(b) && b[ascii] < utf8.RuneSelf {
			ascii++
		}
		dst = append(dst, b[:ascii]...)
		if b = b[ascii:]; len(b) == 0 {
			break
		}
		r, size := javaRune(b)
		dst = c.appendRune(dst, r)
		b = b[size:]
	}
	return dst
}

func (c Charset) appendRune(dst []byte, r rune) []byte {
	switch {
	case c == UTF8:
		return utf8.AppendRune(dst, r)
	case r < utf8.RuneSelf || c == Latin1 && r < 0x100:
		return append(dst, byte(r))
	default:
		return append(dst, '?')
	}
}

// javaRune decodes the character at the start of b, which begins with a byte above 127. Kafka's strings are made by
// String(bytes, UTF_8). Java: String.decodeUTF8_UTF16.
func javaRune(b []byte) (rune, int) {
	if r, size := utf8.DecodeRune(b); r != utf8.RuneError || size > 1 {
		return r, size
	}
	lead, length := b[0], 1
	switch {
	case lead >= 0xe0 && lead <= 0xef:
		length = 3
	case lead >= 0xf0 && lead <= 0xf4:
		length = 4
	default:
		return utf8.RuneError, 1
	}
	n := 1
	for n < min(length, len(b)) && b[n]&0xc0 == 0x80 && (n > 1 || secondFits(lead, b[1])) {
		n++
	}
	return utf8.RuneError, n
}

// secondFits says whether the second byte of a character may follow its lead. Unlike elsewhere, those of surrogates
// do.
func secondFits(lead, second byte) bool {
	switch lead {
	case 0xe0:
		return second >= 0xa0
	case 0xf0:
		return second >= 0x90
	case 0xf4:
		return second < 0x90
	default:
		return true
	}
}

// appendJSONString appends b, the bytes of a string, as a JSON string that Jackson prints.
func (c Charset) appendJSONString(dst, b []byte) []byte {
	const hex = "0123456789ABCDEF"
	dst = append(dst, '"')
	for len(b) > 0 {
		ch := b[0]
		switch {
		case ch >= utf8.RuneSelf:
			n := 1
			for n < len(b) && b[n] >= utf8.RuneSelf {
				n++
			}
			dst = c.appendText(dst, b[:n])
			b = b[n:]
			continue
		case ch == '"' || ch == '\\':
			dst = append(dst, '\\', ch)
		case ch >= 0x20:
			dst = append(dst, ch)
		default:
			if i := strings.IndexByte("\b\t\n\f\r", ch); i >= 0 {
				dst = append(dst, '\\', "btnfr"[i])
			} else {
				dst = append(dst, '\\', 'u', '0', '0', hex[ch>>4], hex[ch&15])
			}
		}
		b = b[1:]
	}
	return append(dst, '"')
}

// javaHash is String.hashCode of a string whose characters are those of s.
func javaHash(s string) int32 {
	var h int32
	for _, r := range s {
		if r > 0xffff {
			r -= 0x10000
			h = 31*h + (0xd800 + r>>10)
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + r
	}
	return h
}

// parseLong is Long.parseLong.
func parseLong(s string) (int64, *Exception) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	return 0, throwf(classNumberFormat, `For input string: "%s"`, s)
}

// appendDouble appends what Double.toString makes of v.
func appendDouble(dst []byte, v float64) []byte {
	text := strconv.FormatFloat(v, 'e', -1, 64)
	mantissa, exponent, has := strings.Cut(text, "e")
	switch {
	case strings.HasSuffix(text, "Inf"):
		return append(dst, strings.TrimPrefix(strings.Replace(text, "Inf", "Infinity", 1), "+")...)
	case !has:
		return append(dst, text...) // NaN
	}
	e, err := strconv.Atoi(exponent)
	if err == nil && (v == 0 || e >= -3 && e < 7) {
		text = strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return append(dst, text...)
	}
	if !strings.Contains(mantissa, ".") {
		mantissa += ".0"
	}
	dst = append(dst, mantissa...)
	dst = append(dst, 'E')
	return strconv.AppendInt(dst, int64(e), 10)
}
