// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/await"
)

// notes holds the lines that a handler has recorded.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprint(args...))
}

// all returns the lines since the last take.
func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.lines)
}

// take returns the lines since its last call.
func (n *notes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines := n.lines
	n.lines = nil
	return lines
}

// wantLines fails the test unless these are the lines since the last take.
func (n *notes) wantLines(t testing.TB, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, n.take()); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// awaitLines waits until these are the lines since the last take.
func (n *notes) awaitLines(t testing.TB, want ...string) {
	t.Helper()
	await.Nil(t, apitest.Timeout, func() error {
		if diff := cmp.Diff(want, n.all()); diff != "" {
			return fmt.Errorf("calls (-want +got):\n%s", diff)
		}
		return nil
	})
	n.take()
}
