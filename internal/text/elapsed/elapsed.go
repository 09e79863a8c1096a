// SPDX-License-Identifier: Apache-2.0

// Package elapsed shows times and durations to people.
package elapsed

import (
	"fmt"
	"time"
)

// Ago returns the time between two times in the largest unit: "3 min ago", or "in 3 min".
func Ago(t, now time.Time) string {
	d := now.Sub(t)
	before, after := "", " ago"
	if d < 0 {
		before, after, d = "in ", "", -d
	}
	switch {
	case d < time.Second:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%s%d s%s", before, int(d.Seconds()), after)
	case d < time.Hour:
		return fmt.Sprintf("%s%d min%s", before, int(d.Minutes()), after)
	case d < 48*time.Hour:
		return fmt.Sprintf("%s%d h%s", before, int(d.Hours()), after)
	}
	return fmt.Sprintf("%s%d days%s", before, int(d.Hours()/24), after)
}

// Duration returns a duration with two or three digits.
func Duration(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
