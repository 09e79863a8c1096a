// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"fmt"
	"weak"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Kept returns a function that reports whether a cluster is still in memory.
func Kept(f *Fleet, name string) func() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	pointer := weak.Make(f.members[name])
	return func() bool { return pointer.Value() != nil }
}

// NamespacesTakeTurns reports whether the namespaces of a cluster take turns in the queue of a controller.
func NamespacesTakeTurns(f *Fleet, controller string) bool {
	f.mu.Lock()
	s := f.controllers[controller]
	f.mu.Unlock()
	<-s.started
	_, x := s.made.turnOf(Request{"a", reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "x"}}})
	_, y := s.made.turnOf(Request{"a", reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "y"}}})
	return x != y
}

// Left returns what a fleet has of a cluster, or "".
func Left(f *Fleet, name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.members[name] != nil {
		return "the cluster is a member"
	}
	for _, s := range f.controllers {
		if !isClosed(s.started) {
			continue
		}
		q := s.made
		q.mu.Lock()
		line, taken := q.lines[name], 0
		for req := range q.taken {
			if req.ClusterName == name {
				taken++
			}
		}
		q.mu.Unlock()
		delayed := 0
		q.Drop(func(req Request) bool {
			if req.ClusterName == name {
				delayed++
			}
			return false
		})
		if line != nil || taken > 0 || delayed > 0 {
			return fmt.Sprintf("controller %q: line %v, %d taken requests, %d delayed ones", s.name, line != nil, taken, delayed)
		}
	}
	return ""
}
