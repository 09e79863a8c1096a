// SPDX-License-Identifier: Apache-2.0

package report

import "testing"

func TestNumber(t *testing.T) {
	for want, value := range map[string]float64{
		"0": 0, "1": 1, "1.50": 1.5, "12.3": 12.345, "100": 99.99 + 0.01, "123": 123.456, "1,235": 1234.6, "20,000": 20000,
		"1,234,568": 1234567.9,
		"0.123":     0.12345, "0.0012": 0.0012345, "-1,000": -1000, "-0.500": -0.5,
	} {
		if got := number(value); got != want {
			t.Errorf("number(%v) is %q, want %q", value, got, want)
		}
	}
}

func TestFactor(t *testing.T) {
	for want, value := range map[string]float64{"0.98": 0.98, "1.00": 1, "37.50": 37.5, "411": 411.2, "1,000": 1000} {
		if got := factor(value); got != want {
			t.Errorf("factor(%v) is %q, want %q", value, got, want)
		}
	}
}
