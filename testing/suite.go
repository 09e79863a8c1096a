// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"strings"
	"testing"
)

// suite runs cases of any kind, in order.
type suite struct {
	all, focused []suiteCase
}

type suiteCase struct {
	name string
	run  func(t *testing.T)
}

func (s *suite) add(name string, focus bool, run func(t *testing.T)) {
	tc := suiteCase{name: name, run: run}
	s.all = append(s.all, tc)
	if focus {
		s.focused = append(s.focused, tc)
	}
}

// run runs the focused cases, or all if none is focused. A focus is for work on a case: it fails the suite, so that it
// is not committed.
func (s *suite) run(t *testing.T) {
	t.Helper()
	if len(s.focused) == 0 {
		runAll(t, s.all)
		return
	}
	runAll(t, s.focused)
	names := strings.Builder{}
	for _, tc := range s.focused {
		names.WriteString("\n\t" + tc.name)
	}
	t.Errorf("%d tests out of %d are still focused, so the test suite fails%s", len(s.focused), len(s.all), names.String())
}

func runAll(t *testing.T, cases []suiteCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, tc.run)
	}
}
