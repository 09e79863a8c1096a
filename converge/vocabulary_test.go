// SPDX-License-Identifier: Apache-2.0

package converge

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// aConstant matches a constant of the internal packages.
var aConstant = regexp.MustCompile(`(?m)^\t(\w+) +(Fault|Oracle|Cause) += "`)

// TestVocabulary checks that users see each constant of the internal packages under the same name.
func TestVocabulary(t *testing.T) {
	read := func(file string) string {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	own := read("vocabulary.go") + read("states.go")
	for file, atLeast := range map[string]int{"inject": 25, "finding": 40} {
		found := aConstant.FindAllStringSubmatch(read("internal/"+file+"/"+file+".go"), -1)
		if len(found) < atLeast {
			t.Errorf("%s has only %d constants", file, len(found))
		}
		for _, c := range found {
			name, typ := c[1], c[2]
			want := typ + strings.TrimPrefix(name, typ) + " " + typ + " = " + file + "." + name + "\n"
			if name != "OracleScenario" && !strings.Contains(own, want) { // that one is not an oracle
				t.Errorf("users do not see %s", want)
			}
		}
	}
}
