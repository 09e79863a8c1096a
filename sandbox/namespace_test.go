// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestNamespacePrefix(t *testing.T) {
	long := strings.Repeat("Long", 30)
	for test, want := range map[string]string{
		"TestWebsite":                 "testwebsite-",
		"TestWebsite/theme_changes":   "testwebsite-theme-changes-",
		"TestA/b,_c/__d__":            "testa-b-c-d-",
		"BenchmarkX-8":                "benchmarkx-8-",
		"TestÜmlaut/日本":               "test-mlaut-",
		"/日本":                         "test-",
		long:                          strings.ToLower(long)[:57] + "-",
		long[:56] + "/x":              strings.ToLower(long)[:56] + "-",
		"TestPath/../../etc/passwd#1": "testpath-etc-passwd-1-",
	} {
		got := namespacePrefix(test)
		if got != want {
			t.Errorf("prefix for %q is %q, want %q", test, got, want)
		}
		if problems := validation.IsDNS1123Label(got + "abcde"); len(problems) > 0 {
			t.Errorf("%qabcde is not a valid name of a namespace: %v", got, problems)
		}
	}
}
