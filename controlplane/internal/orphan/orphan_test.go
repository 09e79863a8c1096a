// SPDX-License-Identifier: Apache-2.0

package orphan

import (
	"slices"
	"testing"
)

func TestDirectories(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"etcd": {
			[]string{"etcd", "--data-dir=/tmp/k8s_test_framework_1", "--listen-client-urls=http://127.0.0.1:1"},
			[]string{"/tmp/k8s_test_framework_1"},
		},
		"kube-apiserver": {
			[]string{"kube-apiserver", "--cert-dir=/tmp/k8s_test_framework_2", "--secure-port=1"},
			[]string{"/tmp/k8s_test_framework_2"},
		},
		"a directory of the user": {[]string{"etcd", "--data-dir=/tmp/mine"}, nil},
		"a directory elsewhere":   {[]string{"etcd", "--data-dir=/home/k8s_test_framework_1"}, nil},
		"below such a directory":  {[]string{"etcd", "--data-dir=/tmp/k8s_test_framework_1/data"}, nil},
		"another flag":            {[]string{"etcd", "--wal-dir=/tmp/k8s_test_framework_1"}, nil},
		"no value":                {[]string{"etcd", "--data-dir", "--cert-dir="}, nil},
		"the parent":              {[]string{"etcd", "--data-dir=/tmp/k8s_test_framework_1/.."}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Directories(c.args, "/tmp/"); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
