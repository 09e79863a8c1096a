// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"strconv"
	"strings"
)

// number formats a value with three significant digits and thousands separators.
func number(value float64) string {
	decimals := 0
	if size := math.Abs(value); size > 0 && size < 100 && value != math.Trunc(value) {
		decimals = min(4, max(0, 2-int(math.Floor(math.Log10(size)))))
	}
	whole, fraction, found := strings.Cut(strconv.FormatFloat(value, 'f', decimals, 64), ".")
	whole = thousands(whole)
	if found {
		return whole + "." + fraction
	}
	return whole
}

// thousands inserts thousands separators.
func thousands(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// factor formats a ratio with two decimals, or fewer for large ratios.
func factor(value float64) string {
	if value < 100 {
		return strconv.FormatFloat(value, 'f', 2, 64)
	}
	return number(value)
}
