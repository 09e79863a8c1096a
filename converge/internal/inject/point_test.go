// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

func TestSchedule_encode(t *testing.T) {
	a := types.NamespacedName{Namespace: "default", Name: "a"}
	s := Schedule{
		{Point{Site{Act: "create", Kind: "ConfigMap", Key: a}, 1}, CrashAfter},
		{Point{Site{Act: "update", Kind: "Widget/status", Key: a}, 12}, TimeoutApplied},
		{
			Point{Site{Act: "get", Kind: "ClusterRole", Key: types.NamespacedName{Name: "system:node@x,y/z"}}, 2},
			ServerError,
		},
		{Point{Site{Act: "lists"}, 1}, ListOrder},
		{Point{Site{Program: "auto/scaler", Act: "update", Kind: "ConfigMap", Key: a}, 3}, Overtaken},
	}
	encoded := s.Encode(7)
	want := "v1:7:crash-after@create:ConfigMap:default/a:1,timeout-applied@update:Widget%2Fstatus:default/a:12,"
	if !strings.HasPrefix(encoded, want) {
		t.Errorf("got %s, want it to begin with %s", encoded, want)
	}
	if want := ",overtaken@auto%2Fscaler:update:ConfigMap:default/a:3"; !strings.HasSuffix(encoded, want) {
		t.Errorf("got %s, want it to end with %s", encoded, want)
	}
	if strings.ContainsAny(encoded, " '\"") {
		t.Errorf("%s has characters that a shell interprets", encoded)
	}
	decoded, seed, err := Decode(encoded + "\n")
	if err != nil || seed != 7 {
		t.Fatal(seed, err)
	}
	if diff := cmp.Diff(describeAll(s), describeAll(decoded)); diff != "" {
		t.Errorf("decoded (-want +got):\n%s", diff)
	}
	if empty, _, err := Decode(Schedule{}.Encode(1)); err != nil || len(empty) != 0 {
		t.Errorf("no faults: got %v, %v", empty, err)
	}
}

func describeAll(s Schedule) []string {
	var all []string
	for _, d := range s {
		all = append(all, d.String())
	}
	return all
}

func TestDecodeSchedule_invalid(t *testing.T) {
	for encoded, want := range map[string]string{
		"":                                  "must begin with",
		"v2:1:":                             "must begin with",
		"v1:restart@quiet::a/b:1":           "a seed and a colon",
		"v1:-1:":                            "a seed and a colon",
		"v1:1":                              "a seed and a colon",
		"v1:1:flood@create:ConfigMap:a/b:1": `unknown fault "flood"`,
		"v1:1:restart":                      "unknown fault",
		"v1:1:restart@quiet":                "separated by colons",
		"v1:1:restart@quiet:%zz:a/b:1":      "invalid URL escape",
		"v1:1:restart@quiet::%zz/b:1":       "invalid URL escape",
		"v1:1:restart@quiet::a/%zz:1":       "invalid URL escape",
		"v1:1:restart@quiet::a/b:0":         "must be a number greater than 0",
		"v1:1:restart@quiet::a/b:x":         "must be a number greater than 0",
	} {
		if _, _, err := Decode(encoded); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", encoded, err, want)
		}
	}
}

func FuzzDecodeSchedule(f *testing.F) {
	f.Add("v1:1:crash-after@create:ConfigMap:default/a:1,list-order@lists::/:1")
	f.Fuzz(func(t *testing.T, encoded string) {
		s, seed, err := Decode(encoded)
		if err != nil {
			return
		}
		again, same, err := Decode(s.Encode(seed))
		if err != nil || same != seed {
			t.Fatalf("%q becomes %q: seed %d, %v", encoded, s.Encode(seed), same, err)
		}
		if diff := cmp.Diff(describeAll(s), describeAll(again)); diff != "" {
			t.Errorf("%q is decoded differently (-want +got):\n%s", encoded, diff)
		}
	})
}
