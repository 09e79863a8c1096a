// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"regexp"
	"strings"
	"testing"
)

// fieldsPackage is the only package that depends on fields of other modules that these do not export.
const fieldsPackage = "internal/ctrlfields/"

// reflecting lists the other files with reflection that can go around the rules of Go, with what they do with it.
var reflecting = map[string]string{
	"converge/internal/search/tune.go":          "reads whether a testing.T runs in parallel",
	"internal/defaults/workload.go":             "compares pointers",
	"internal/memapi/kinds/equal.go":            "compares pointers",
	"internal/objects/weakmap/weakmap.go":       "identifies a manager or a cache by a pointer",
	"internal/memapi/kinds/wire_forms.go":       "reads whether a quantity has kept its text",
	"lab/operators/karpenter/nodeclaim_test.go": "stops a goroutine of Karpenter",
	"resource/copyplan.go":                      "copies fields of the types of users",
	"resource/copyplan_test.go":                 "compares copied fields",
}

// aroundRules finds unsafe code, and accesses to fields that are not exported, or that are exported by internal types
// of controller-runtime.
var aroundRules = regexp.MustCompile(`\n(import |\t)"unsafe"|//go:linknam[e]|\.UnsafePointer\(\)|\.UnsafeAddr\(\)|` +
	`reflect\.NewAt\(|FieldByName\("([a-z]|(Do|NewQueue|Queue|Type|Cache|Handler|Predicates|Informers?)")`)

func TestPrivateFieldsAreReadInOnePlace(t *testing.T) {
	found := map[string]bool{}
	for _, f := range sourceFiles(t) {
		if !f.isGo() || strings.HasPrefix(f.path, fieldsPackage) {
			continue
		}
		match := strings.TrimSpace(aroundRules.FindString(f.content))
		if match == "" {
			continue
		}
		found[f.path] = true
		if reflecting[f.path] == "" {
			t.Errorf("%s contains %s: read fields of controller-runtime with %s", f.path, match, fieldsPackage)
		}
	}
	for path := range reflecting {
		if !found[path] {
			t.Errorf("%s needs no entry in the list", path)
		}
	}
}
