// SPDX-License-Identifier: Apache-2.0

package walk

import (
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
	if diff := cmp.Diff(want, decoded.Describe()); diff != "" {
		t.Errorf("description (-want +got):\n%s", diff)
	}
	if shorter := decoded.Without("spec.size", -1); shorter.Size() != decoded.Size()-3 ||
		!cmp.Equal(shorter.Paths(), []string{"spec.name"}) {
		t.Errorf("without a property: %d instead of %d, %v", shorter.Size(), decoded.Size(), shorter.Paths())
	}
}
