// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"io"
	"path/filepath"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// startReal starts a separate control plane with as few controllers as possible.
func startReal(t *testing.T, o Options) *Sandbox {
	t.Helper()
	t.Setenv(KubeconfigVariable, "")
	o.Controllers, o.DisablePods, o.Progress = []string{"none"}, true, io.Discard
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func configMaps(s *Sandbox) corev1client.ConfigMapInterface {
	return corev1client.NewForConfigOrDie(s.RESTConfig()).ConfigMaps("default")
}

func TestTwoSandboxesSideBySide(t *testing.T) {
	if testing.Short() {
		t.Skip("starts two control planes: with -short, tests of cmd/trueup start theirs beside each other")
	}
	t.Setenv(KubeconfigVariable, "")
	var both [2]*Sandbox
	var group sync.WaitGroup
	for i := range both {
		group.Go(func() {
			s, err := Start(t.Context(), Options{Controllers: []string{"none"}, DisablePods: true, Progress: io.Discard})
			if err != nil {
				t.Error(err)
				return
			}
			both[i] = s
		})
	}
	group.Wait()
	defer func() {
		for _, s := range both {
			if s == nil {
				continue
			}
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		}
	}()
	if t.Failed() {
		return
	}
	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "mine"}}
	if _, err := configMaps(both[0]).Create(t.Context(), one, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := configMaps(both[1]).Get(t.Context(), "mine", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("an object of one control plane exists in the other: %v", err)
	}
	if err := both[0].Stop(); err != nil {
		t.Error(err)
	}
	if _, err := configMaps(both[1]).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the second control plane ended with the first: %v", err)
	}
}

func TestDirKeepsObjects(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane twice: with -short, TestDirStays runs without one")
	}
	dir := filepath.Join(t.TempDir(), "data")
	s := startReal(t, Options{Dir: dir})
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}, Data: map[string]string{"a": "b"}}
	if _, err := configMaps(s).Create(t.Context(), kept, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	again := startReal(t, Options{Dir: dir})
	got, err := configMaps(again).Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || got.Data["a"] != "b" {
		t.Errorf("after a restart got %v, %v", got, err)
	}
}
