// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"testing"

	"trueup.dev/converge/internal/kinds"
	"trueup.dev/internal/fixture"
)

func TestKindsOfTheScheme(t *testing.T) {
	registry, err := kinds.NewRegistry(fixture.NewScheme())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Resource", "ResourceNoStatus"} {
		k, ok := registry.For(fixture.GroupVersion.WithKind(name))
		if !ok {
			t.Fatalf("%s is not served", name)
		}
		if want := name == "Resource"; k.Status != want {
			t.Errorf("%s: status subresource %v, want %v", name, k.Status, want)
		}
	}
}
