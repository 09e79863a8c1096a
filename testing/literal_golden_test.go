// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	rtesting "trueup.dev/testing"
)

// What is printed is what people would write: testdata/literals.golden is there to be read. -update writes it.
func TestLiteralsAreReadable(t *testing.T) {
	const golden = "testdata/literals.golden"
	var got strings.Builder
	values := rtesting.LiteralValues()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		expr, _ := rtesting.LiteralAndImports(values[name])
		fmt.Fprintf(&got, "// %s\n%s\n\n", name, expr)
	}
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", golden, diff)
	}
}
