package store

import "testing"

func TestFormatMoney(t *testing.T) {
	for nano, want := range map[int64]string{
		0: "$0.00", -5: "$0.00", 1: "$0.000000001", 1_230: "$0.00000123", 999_999_999: "$0.999", 50_000_000: "$0.05", 500_000_000: "$0.50",
		12_345_678: "$0.0123", 1_000_000_000: "$1.00", 2_509_999_999: "$2.50", 1_234_567_890_123: "$1234.56", 9_223_372_036_854_775_807: "$9223372036.85",
	} {
		if got := FormatMoney(nano); got != want {
			t.Errorf("%d nano-dollars are %q, want %q", nano, got, want)
		}
	}
}
