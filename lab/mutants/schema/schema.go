// SPDX-License-Identifier: Apache-2.0

// Package mutant contains what a mutated place calls. Command mutants copies it into the clone of the module, beside
// the mutated packages.
//
// The variable TRUEUP_MUTANT is the number of the active mutant. If TRUEUP_MUTANTS_REACHED names a file, the number of
// each place is appended to it when the place is reached first.
package mutant

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
)

var (
	active, _ = strconv.Atoi(os.Getenv("TRUEUP_MUTANT"))
	record    = os.Getenv("TRUEUP_MUTANTS_REACHED")
	reached   [1000]atomic.Bool
)

// On reports whether the mutant with this number is active.
func On(number int) bool {
	if record != "" && !reached[number].Load() && !reached[number].Swap(true) {
		write(number)
	}
	return number == active
}

func write(number int) {
	file, err := os.OpenFile(record, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close() //nolint:errcheck // Fprintln reports what could not be written.
	if _, err := fmt.Fprintln(file, number); err != nil {
		panic(err)
	}
}

// Bound compares two values, and changes whether equal ones are included if the mutant is active.
func Bound[T cmp.Ordered](number int, operator string, a, b T) bool {
	if On(number) && a == b {
		return operator == "<" || operator == ">"
	}
	switch operator {
	case "<":
		return a < b
	case "<=":
		return a <= b
	case ">":
		return a > b
	default:
		return a >= b
	}
}

// Logic returns a && b or a || b, and the other one if the mutant is active.
func Logic(number int, operator string, a bool, b func() bool) bool {
	if On(number) != (operator == "&&") {
		return a && b()
	}
	return a || b()
}

// Error returns err, or nil if the mutant is active.
func Error(number int, err error) error {
	if On(number) {
		return nil
	}
	return err
}

// Constant returns value, or other if the mutant is active.
func Constant[T any](number int, value, other T) T {
	if On(number) {
		return other
	}
	return value
}
