// SPDX-License-Identifier: Apache-2.0

package state

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/phrase"
)

// GeneratedNames are the names that the API server and the external system have generated in a run, in their order.
// They differ when other faults are injected, and so do all names, keys and values that contain them. Wherever runs are
// compared, a generated name is replaced by its prefix and a star.
type GeneratedNames []GeneratedName

// GeneratedName is a name, and what replaces it.
type GeneratedName struct{ Name, Replacement string }

// shortestGenerated is the length of the shortest name that is replaced. Shorter ones, which only an external system
// generates, are also parts of other texts.
const shortestGenerated = 4

// suffixLength is how much the API server adds to a generateName.
const suffixLength = 5

// HasGeneratedName reports whether the API server has generated the name of an object.
func HasGeneratedName(obj client.Object) bool {
	prefix, name := obj.GetGenerateName(), obj.GetName()
	return prefix != "" && len(name) == len(prefix)+suffixLength && strings.HasPrefix(name, prefix)
}

// Learn adds a name that was generated from a prefix.
func (g *GeneratedNames) Learn(name, prefix string) {
	if len(name) >= shortestGenerated {
		*g = append(*g, GeneratedName{name, g.Replace(prefix) + "*"})
	}
}

// Replace replaces the generated names in a text. Letters or digits next to a name make it a part of another one.
func (g GeneratedNames) Replace(text string) string {
	if len(g) == 0 {
		return text
	}
	var replaced strings.Builder
	kept := 0
	for at := 0; at < len(text); at++ {
		if at > 0 && isAlphanumeric(text[at-1]) {
			continue
		}
		if found := g.startOf(text[at:]); found != nil {
			replaced.WriteString(text[kept:at])
			replaced.WriteString(found.Replacement)
			kept = at + len(found.Name)
			at = kept - 1
		}
	}
	if kept == 0 {
		return text
	}
	replaced.WriteString(text[kept:])
	return replaced.String()
}

// startOf returns the generated name that a text starts with, or nil. A name may have been generated from an earlier
// one, which it contains.
func (g GeneratedNames) startOf(text string) *GeneratedName {
	for i := range slices.Backward(g) {
		if rest, ok := strings.CutPrefix(text, g[i].Name); ok && (rest == "" || !isAlphanumeric(rest[0])) {
			return &g[i]
		}
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// Key returns a key as it is in injection points.
func (g GeneratedNames) Key(key types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: g.Replace(key.Namespace), Name: g.Replace(key.Name)}
}

// Thing identifies an object.
func (g GeneratedNames) Thing(kind schema.GroupVersionKind, obj client.Object) Thing {
	return Thing{kind, g.Key(client.ObjectKeyFromObject(obj))}
}

// Thing identifies an object by its name or, if that is generated or contains a generated one, all objects whose names
// are alike.
type Thing struct {
	Kind schema.GroupVersionKind
	Key  types.NamespacedName
}

func (t Thing) String() string { return t.Kind.Kind + " " + phrase.Name(t.Key) }

// Replacer replaces what differs in each run: UIDs, and generated names.
type Replacer struct {
	UIDs  *strings.Replacer
	Names GeneratedNames
}

// replacer returns the replacer for the fields of a state.
func (s *Snapshot) replacer() *Replacer {
	var uids []string
	for i, kind := range s.Kinds {
		for _, obj := range s.Objects[i] {
			uids = append(uids, string(obj.GetUID()), UidOf(s.Generated.Thing(kind, obj)))
		}
	}
	return &Replacer{UIDs: strings.NewReplacer(uids...), Names: s.Names()}
}

// UidOf replaces the UID of an object.
func UidOf(t Thing) string { return "uid(" + t.String() + ")" }

// Replace replaces what differs in each run in a text.
func (r *Replacer) Replace(text string) string { return r.Names.Replace(r.UIDs.Replace(text)) }
