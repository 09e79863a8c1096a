// SPDX-License-Identifier: Apache-2.0

package literal_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/testing/internal/literal"
)

var update = flag.Bool("update", false, "write testdata/literals.golden instead of comparing with it")

// Literals look as people write them. testdata/literals.golden is for readers to judge that.
func TestLiteralsAreReadable(t *testing.T) {
	const golden = "testdata/literals.golden"
	var got strings.Builder
	all := values()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		expr, _ := literal.WithImports(all[name])
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
