// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/converge/internal/phrase"
)

// generatedNames are the names that the API server and the external system have generated in a run, in their order.
// They differ when other faults are injected, and so do all names, keys and values that contain them. Wherever runs are
// compared, a generated name is replaced by its prefix and a star.
type generatedNames []generatedName

type generatedName struct{ name, replacement string }

// shortestGenerated is the length of the shortest name that is replaced. Shorter ones, which only an external system
// generates, are also parts of other texts.
const shortestGenerated = 4

// suffixLength is how much the API server adds to a generateName.
const suffixLength = 5

// hasGeneratedName reports whether the API server has generated the name of an object.
func hasGeneratedName(obj client.Object) bool {
	prefix, name := obj.GetGenerateName(), obj.GetName()
	return prefix != "" && len(name) == len(prefix)+suffixLength && strings.HasPrefix(name, prefix)
}

// learn adds a name that was generated from a prefix.
func (g *generatedNames) learn(name, prefix string) {
	if len(name) >= shortestGenerated {
		*g = append(*g, generatedName{name, g.replace(prefix) + "*"})
	}
}

// replace replaces the generated names in a text. Letters or digits next to a name make it a part of another one.
func (g generatedNames) replace(text string) string {
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
			replaced.WriteString(found.replacement)
			kept = at + len(found.name)
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
func (g generatedNames) startOf(text string) *generatedName {
	for i := range slices.Backward(g) {
		if rest, ok := strings.CutPrefix(text, g[i].name); ok && (rest == "" || !isAlphanumeric(rest[0])) {
			return &g[i]
		}
	}
	return nil
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// key returns a key as it is in injection points.
func (g generatedNames) key(key types.NamespacedName) types.NamespacedName {
	return types.NamespacedName{Namespace: g.replace(key.Namespace), Name: g.replace(key.Name)}
}

// thing identifies an object.
func (g generatedNames) thing(kind schema.GroupVersionKind, obj client.Object) thing {
	return thing{kind, g.key(client.ObjectKeyFromObject(obj))}
}

// thing identifies an object by its name or, if that is generated or contains a generated one, all objects whose names
// are alike.
type thing struct {
	kind schema.GroupVersionKind
	key  types.NamespacedName
}

func (t thing) String() string { return t.kind.Kind + " " + phrase.Name(t.key) }

// replacer replaces what differs in each run: UIDs, and generated names.
type replacer struct {
	uids  *strings.Replacer
	names generatedNames
}

// replacer returns the replacer for the fields of a state.
func (s *snapshot) replacer() *replacer {
	var uids []string
	for i, kind := range s.kinds {
		for _, obj := range s.objects[i] {
			uids = append(uids, string(obj.GetUID()), uidOf(s.generated.thing(kind, obj)))
		}
	}
	return &replacer{uids: strings.NewReplacer(uids...), names: s.names()}
}

// uidOf replaces the UID of an object.
func uidOf(t thing) string { return "uid(" + t.String() + ")" }

func (r *replacer) Replace(text string) string { return r.names.replace(r.uids.Replace(text)) }
