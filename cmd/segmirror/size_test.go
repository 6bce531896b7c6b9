package main

import "testing"

func TestParseSize_ReadsBinaryAndDecimalUnits(t *testing.T) {
	for text, want := range map[string]int64{
		"256MiB": 256 << 20, "1.5GB": 1_500_000_000, "4096": 4096, "7 kB": 7000, "2GiB": 2 << 30, "10B": 10, "0": 0,
	} {
		if got, err := parseSize(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "-1", "1e300GiB", "NaN", "12XB", "1 2", "9223372036854775808"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q was read as %d", text, got)
		}
	}
}

func TestFormatSizeAndCount_AreReadable(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 256 << 20: "256.0 MiB", 3 << 30: "3.0 GiB",
	} {
		if got := formatSize(bytes); got != want {
			t.Errorf("%d bytes: %q, want %q", bytes, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := formatCount(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
