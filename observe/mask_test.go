// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestMaskHides(t *testing.T) {
	mask := Mask{Paths: []string{"spec.auth.password", "data.token", "spec.containers[app].env"}}
	for path, want := range map[string]bool{
		"spec.auth.password":                 true,
		"spec.auth.password.value":           true,
		"spec.auth.passwordPolicy":           false,
		"spec.auth":                          true, // the value contains the password
		"spec":                               true,
		"spec.size":                          false,
		"data[token]":                        true,
		"data[tokens]":                       false,
		"spec.containers[app].env[A].value":  true,
		"spec.containers[web].env[A].value":  false,
		"status.conditions[Ready:False=Bad]": false,
	} {
		if got := mask.hides(schema.GroupKind{Kind: "Database"}, path); got != want {
			t.Errorf("%s: hidden is %v, want %v", path, got, want)
		}
	}
	if !(Mask{}).hides(schema.GroupKind{Kind: "Secret"}, "data[a]") {
		t.Error("the values of Secrets are shown")
	}
	if (Mask{}).hides(schema.GroupKind{Kind: "ConfigMap"}, "data[a]") {
		t.Error("the values of ConfigMaps are hidden")
	}
}

func TestEncodedIsReadable(t *testing.T) {
	if got := encoded("https://a/?b=1&c=<2>"); got != `"https://a/?b=1&c=<2>"` {
		t.Errorf("got %s", got)
	}
}
