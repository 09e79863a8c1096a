// SPDX-License-Identifier: Apache-2.0

package abandoned

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestKubeconfig(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	alive := "https://" + listener.Addr().String()
	const dead = "https://127.0.0.1:1"
	for name, c := range map[string]struct {
		content string
		want    bool
	}{
		"killed control plane":     {kubeconfig("trueup-controlplane", "trueup-controlplane", dead), true},
		"killed API in memory":     {kubeconfig("trueup-memory", "trueup-memory", dead), true},
		"running server":           {kubeconfig("trueup-memory", "trueup-memory", alive), false},
		"another program":          {kubeconfig("kind-test", "kind-test", dead), false},
		"cluster does not exist":   {kubeconfig("trueup-memory", "other", dead), false},
		"address cannot be parsed": {kubeconfig("trueup-memory", "trueup-memory", "https://[::1"), false},
		"address cannot be dialed": {kubeconfig("trueup-memory", "trueup-memory", "https://"), false},
		"no context":               {`{"apiVersion": "v1", "kind": "Config", "current-context": "trueup-memory"}`, false},
		"not a kubeconfig":         {"mine", false},
		"empty":                    {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "kubeconfig")
			if err := os.WriteFile(file, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := Kubeconfig(t.Context(), file); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
	if Kubeconfig(t.Context(), filepath.Join(t.TempDir(), "missing")) {
		t.Error("a file that does not exist is abandoned")
	}
}

func kubeconfig(context, cluster, server string) string {
	return `{"apiVersion": "v1", "kind": "Config", "current-context": "` + context + `",
"contexts": [{"name": "` + context + `", "context": {"cluster": "` + cluster + `"}}],
"clusters": [{"name": "trueup-memory", "cluster": {"server": "` + server + `"}},
	{"name": "trueup-controlplane", "cluster": {"server": "` + server + `"}},
	{"name": "kind-test", "cluster": {"server": "` + server + `"}}]}`
}
