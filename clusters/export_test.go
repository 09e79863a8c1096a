// SPDX-License-Identifier: Apache-2.0

package clusters

import (
	"fmt"
	"weak"
)

// Kept returns a function that reports whether a cluster is still in memory.
func Kept(f *Fleet, name string) func() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	pointer := weak.Make(f.members[name])
	return func() bool { return pointer.Value() != nil }
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
