// SPDX-License-Identifier: Apache-2.0

package state

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// RandomNames are the names to which the reconciler adds random letters itself, as the API server does for a
// generateName. They are found by comparing two equal runs without faults.
type RandomNames map[RandomName]bool

// RandomName identifies the names of a kind that differ only in the letters after a prefix.
type RandomName struct {
	Kind schema.GroupVersionKind
	// Prefix is what the letters are added to. Generated names in it are replaced.
	Prefix string
}

// randomLetters are the letters of k8s.io/apimachinery/pkg/util/rand.
const randomLetters = "bcdfghjklmnpqrstvwxz2456789"

// CutRandom splits a name that ends with as many random letters as the API server adds.
func CutRandom(name string) (prefix, letters string, ok bool) {
	at := len(name) - suffixLength
	if at <= 0 || name[at-1] != '-' || strings.Trim(name[at:], randomLetters) != "" {
		return "", "", false
	}
	return name[:at], name[at:], true
}

// Find adds the names that are random in two equal runs, and reports whether it has found any: each run has an object
// that the other one lacks, and only the letters differ.
func (n RandomNames) Find(a, b []*Snapshot) bool {
	found := false
	for i := range min(len(a), len(b)) {
		if Alike(a[i], b[i]) {
			continue
		}
		one, other := a[i].randomNames(), b[i].randomNames()
		for key, name := range one {
			if _, same := other[key]; same || n[name] {
				continue
			}
			for otherKey, otherName := range other {
				if _, same := one[otherKey]; !same && otherName == name {
					n[name], found = true, true
				}
			}
		}
	}
	return found
}

// objectKey identifies an object in a snapshot.
type objectKey struct {
	kind schema.GroupVersionKind
	key  types.NamespacedName
}

// randomNames returns the objects whose names may be random.
func (s *Snapshot) randomNames() map[objectKey]RandomName {
	found := map[objectKey]RandomName{}
	for i, kind := range s.Kinds {
		for _, obj := range s.Objects[i] {
			_, letters, ok := CutRandom(obj.GetName())
			if !ok || obj.GetGenerateName() != "" {
				continue
			}
			// A name that is derived from a generated one is the same in both runs after the replacement.
			if prefix, ok := strings.CutSuffix(s.Generated.Replace(obj.GetName()), letters); ok {
				found[objectKey{kind, client.ObjectKeyFromObject(obj)}] = RandomName{kind, prefix}
			}
		}
	}
	return found
}
