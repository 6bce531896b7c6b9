package dump

import (
	"errors"
	"strings"
	"testing"
)

func TestParse_RefusesDecodersThatAreNotKafkas(t *testing.T) {
	for _, flag := range []string{"--key-decoder-class", "--value-decoder-class"} {
		_, err := Parse([]string{"--files", "f", flag, "kafka.serializer.StringDecoder"})
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(usage.Text, flag) || !strings.Contains(usage.Text, "kafka.serializer.StringDecoder") {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

func TestParse_AsksForHelpAndVersion(t *testing.T) {
	for args, want := range map[string]error{"": ErrHelp, "--help": ErrHelp, "--version --help": ErrHelp, "--version": ErrVersion} {
		if _, err := Parse(strings.Fields(args)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", args, err, want)
		}
	}
}

func TestWriteUsage_NamesEveryOption(t *testing.T) {
	var text strings.Builder
	if err := WriteUsage(&text); err != nil {
		t.Fatal(err)
	}
	for _, option := range (&Options{}).options() {
		if !strings.Contains(text.String(), "--"+option.name+" ") || option.describe == "" {
			t.Errorf("no word of --%s", option.name)
		}
	}
}

func TestFileMap_WalksInTheOrderOfAJavaHashMap(t *testing.T) {
	var m fileMap[*pairs]
	for i, name := range strings.Fields(hashMapAdded) {
		for range 1 + i%2 {
			m.get(name, newPairs)
		}
	}
	var got []string
	m.each(func(name string, _ *pairs) { got = append(got, name) })
	if want := strings.Join(strings.Fields(hashMapWalked), " "); strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
}

func TestLocaleCharset_IsThatOfTheFirstVariableThatIsSet(t *testing.T) {
	for _, c := range []struct {
		all, ctype, lang string
		want             Charset
	}{
		{"", "", "", ASCII},
		{"C", "", "en_US.UTF-8", ASCII},
		{"POSIX", "", "", ASCII},
		{"C.UTF-8", "C", "C", UTF8},
		{"", "de_DE.utf8@euro", "C", UTF8},
		{"", "", "en_US.ISO-8859-1", Latin1},
		{"", "", "en_US", Latin1},
	} {
		t.Setenv("LC_ALL", c.all)
		t.Setenv("LC_CTYPE", c.ctype)
		t.Setenv("LANG", c.lang)
		if got := LocaleCharset(); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func TestCharset_PrintsQuestionMarksForWhatItLacks(t *testing.T) {
	for charset, want := range map[Charset]string{UTF8: "aé€😀\ufffd", ASCII: "a????", Latin1: "a\xe9???"} {
		if got := string(charset.appendText(nil, []byte("aé€😀\xff"))); got != want {
			t.Errorf("charset %d: %q, want %q", charset, got, want)
		}
	}
}

func TestAppendDouble_PrintsAsJava(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0.0", 1: "1.0", 1000.5: "1000.5", 9999999: "9999999.0", 1e7: "1.0E7", 0.001: "0.001", 0.00099: "9.9E-4",
		-2.5e300: "-2.5E300", 123456789: "1.23456789E8",
	} {
		if got := string(appendDouble(nil, v)); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
