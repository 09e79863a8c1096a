// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"trueup.dev/converge/internal/state"
)

// Ledger counts what the process has created and deleted.
type Ledger struct {
	Created, Deleted map[state.Thing]int
	// Live counts the existing objects that the process has created, and Most is the maximum of Live.
	Live, Most map[state.Thing]int
	// Lost counts the objects that the process has created and actors have deleted.
	Lost map[state.Thing]int
	// Explained counts the interferences of other clients that require another creation or deletion.
	Explained map[state.Thing]int
	// Replaced counts the deleted objects with generated names whose creators have failed. Another object replaces each of
	// them.
	Replaced map[state.Thing]int
	// Released are the finalizers that programs and actors have removed.
	Released map[FinalizerOf]bool
}

// FinalizerOf is a finalizer of the objects of a kind.
type FinalizerOf struct {
	Kind      schema.GroupVersionKind
	Finalizer string
}

// NewLedger returns an empty ledger.
func NewLedger() Ledger {
	return Ledger{
		Created: map[state.Thing]int{}, Deleted: map[state.Thing]int{}, Live: map[state.Thing]int{},
		Most: map[state.Thing]int{}, Lost: map[state.Thing]int{}, Explained: map[state.Thing]int{},
		Replaced: map[state.Thing]int{}, Released: map[FinalizerOf]bool{},
	}
}

// Raise sets each number to at least the number of another run.
func (l *Ledger) Raise(other Ledger) {
	for _, pair := range [][2]map[state.Thing]int{
		{l.Created, other.Created}, {l.Deleted, other.Deleted}, {l.Most, other.Most},
	} {
		for t, n := range pair[1] {
			pair[0][t] = max(pair[0][t], n)
		}
	}
}
