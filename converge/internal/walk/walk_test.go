// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/internal/memapi/specs"
)

func TestWalksThatCannotBeDecoded(t *testing.T) {
	for _, encoded := range []string{"", "v1:1:", "w1:x:", "w1:1:a", "w1:1:a=%zz", "w1:1:a={", "w1:1:|v1:1:x"} {
		if _, _, _, err := Decode(encoded); err == nil {
			t.Errorf("%q: no error", encoded)
		}
	}
}

// TestWalk_encode decodes what it encodes, and describes each write by its difference from the one before it.
func TestWalk_encode(t *testing.T) {
	set := func(path string, content any) specs.Change {
		return specs.Change{Path: specs.ParsePath(path), Value: specs.Value{Content: content}}
	}
	absent := specs.Change{Path: specs.ParsePath("spec.name"), Value: specs.Value{Unset: true}}
	two := Spec{}.With(set("spec.size", int64(2)))
	w := append(Walk{{}, two, two.With(absent)}.Disturbed("a user & more"), Spec{}, Spec{Deleted: true})
	faults := inject.Schedule{{Point: inject.Point{Site: inject.Site{Act: "lists"}, N: 1}, Fault: inject.ListOrder}}
	encoded := w.Encode(7, faults)
	if want := "w1:7:;spec.size=2;"; !strings.HasPrefix(encoded, want) {
		t.Errorf("got %s, want it to begin with %s", encoded, want)
	}
	decoded, seed, again, err := Decode(encoded)
	if err != nil || seed != 7 {
		t.Fatal(seed, err)
	}
	if got := decoded.Encode(seed, again); got != encoded {
		t.Errorf("decoded and encoded again: got %s, want %s", got, encoded)
	}
	want := []string{
		"create", "spec.size = 2", "spec.name = unset", "a user & more", "spec.name as at first, spec.size as at first",
		"delete",
	}
	if diff := cmp.Diff(want, decoded.Describe(nil)); diff != "" {
		t.Errorf("description (-want +got):\n%s", diff)
	}
	if shorter := decoded.Without("spec.size", -1); shorter.Size() != decoded.Size()-3 ||
		!cmp.Equal(shorter.Paths(), []string{"spec.name"}) {
		t.Errorf("without a property: %d instead of %d, %v", shorter.Size(), decoded.Size(), shorter.Paths())
	}
}

// TestWalk_describeParts describes only the parts of a nested value that differ.
func TestWalk_describeParts(t *testing.T) {
	spec := func(content string) Spec {
		value, err := JSONContent(json.RawMessage(content))
		if err != nil {
			t.Fatal(err)
		}
		return Spec{}.With(specs.Change{Path: specs.Path{"spec"}, Value: specs.Value{Content: value}})
	}
	base := map[string]any{"spec": map[string]any{"size": int64(1), "ports": []any{map[string]any{"name": "http"}}}}
	const long = `"a text that is so long that the value of which it is a part does not fit into a line"`
	w := Walk{
		spec(`{"size":1,"ports":[{"name":"https"}],"tls":{"secret":"a"}}`),
		spec(`{"size":1,"ports":[{"name":"https"},{"name":"ftp"}],"tls":{"secret":"b"}}`),
		spec(`{"size":1,"ports":[{"name":"https"}],"a":{"b":{"c":` + long + `}}}`),
		spec(`{"size":1,"ports":[{"name":"https"}],"a":{"b":{"c":` + long + `}}}`),
		{},
		spec(`{"size":1,"ports":[{"name":"http"}],"m":{"1":1,"2":2,"3":3,"4":4,"5":5,"6":6,"7":7,"8":8,"nine":9,"ten":10}}`),
	}
	want := []string{
		`create with spec.ports[0].name = "https", spec.tls = {"secret":"a"}`,
		`spec.ports[1] = {"name":"ftp"}, spec.tls.secret = "b"`,
		`spec.a.b.c = ` + long + `, spec.ports[1] = unset, spec.tls = unset`,
		"write the same again",
		"spec as at first",
		"spec.m.1 = 1, spec.m.2 = 2, spec.m.3 = 3, spec.m.4 = 4, spec.m.5 = 5, spec.m.6 = 6, 4 more in spec",
	}
	if diff := cmp.Diff(want, w.Describe(base)); diff != "" {
		t.Errorf("description (-want +got):\n%s", diff)
	}
}
