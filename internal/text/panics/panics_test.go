// SPDX-License-Identifier: Apache-2.0

package panics_test

import (
	"errors"
	"regexp"
	"testing"

	"trueup.dev/internal/text/panics"
)

// What has panicked, and where?
func TestText(t *testing.T) {
	var none map[string]int
	for name, tc := range map[string]struct {
		panics func()
		want   string
	}{
		"an error":         {func() { panic(errors.New("broken")) }, `^broken \(in panics_test\.TestText\.func1, panics_test\.go:\d+\)$`},
		"a runtime error":  {func() { none["a"]++ }, `^assignment to entry in nil map \(in .*, panics_test\.go:\d+\)$`},
		"a signal":         {func() { _ = *(*int)(nil) }, `nil pointer dereference \(in .*, panics_test\.go:\d+\)$`},
		"with a nil value": {func() { panic(nil) }, `nil .*\(in .*, panics_test\.go:\d+\)$`},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if got := panics.Text(recover()); !regexp.MustCompile(tc.want).MatchString(got) {
					t.Errorf("got %q, want a match of %s", got, tc.want)
				}
			}()
			tc.panics()
		})
	}
}
