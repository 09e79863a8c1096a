// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// randomNames are the names to which the reconciler adds random letters itself, as the API server does for a
// generateName. They are found by comparing two equal runs without faults.
type randomNames map[randomName]bool

type randomName struct {
	kind schema.GroupVersionKind
	// prefix is what the letters are added to. Generated names in it are replaced.
	prefix string
}

// randomLetters are those of k8s.io/apimachinery/pkg/util/rand.
const randomLetters = "bcdfghjklmnpqrstvwxz2456789"

// cutRandom splits a name that ends with as many random letters as the API server adds.
func cutRandom(name string) (prefix, letters string, ok bool) {
	at := len(name) - suffixLength
	if at <= 0 || name[at-1] != '-' || strings.Trim(name[at:], randomLetters) != "" {
		return "", "", false
	}
	return name[:at], name[at:], true
}

// find adds the names that are random in two equal runs, and reports whether it has found any: each run has an object
// that the other one lacks, and only the letters differ.
func (n randomNames) find(a, b []*snapshot) bool {
	found := false
	for i := range min(len(a), len(b)) {
		if alike(a[i], b[i]) {
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
func (s *snapshot) randomNames() map[objectKey]randomName {
	found := map[objectKey]randomName{}
	for i, kind := range s.kinds {
		for _, obj := range s.objects[i] {
			_, letters, ok := cutRandom(obj.GetName())
			if !ok || obj.GetGenerateName() != "" {
				continue
			}
			// A name that is derived from a generated one is the same in both runs after the replacement.
			if prefix, ok := strings.CutSuffix(s.generated.replace(obj.GetName()), letters); ok {
				found[objectKey{kind, client.ObjectKeyFromObject(obj)}] = randomName{kind, prefix}
			}
		}
	}
	return found
}
