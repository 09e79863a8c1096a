// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

func TestWatched(t *testing.T) {
	const (
		pods        = "/api/v1/pods"
		deployments = "/apis/apps/v1/deployments"
		restricted  = deployments + "?watch=true&fieldSelector=metadata.namespace%3Dn"
		inNamespace = "/api/v1/namespaces/n/pods"
	)
	got := map[string]string{}
	want := map[string]string{
		"GET " + pods:                        "", // a list
		"GET " + pods + "?watch=false":       "",
		"GET " + pods + "?watch=true":        "api/v1/pods",
		"GET " + deployments + "?watch=1":    "apis/apps/v1/deployments",
		"GET " + restricted:                  "",
		"GET " + inNamespace + "?watch=true": "",
		"GET /apis/apps/v1?watch=true":       "", // discovery
		"GET /healthz?watch=true":            "",
		"GET /openapi/v3/apis/apps":          "",
		"POST " + pods + "?watch=true":       "",
	}
	for request := range want {
		method, path, _ := strings.Cut(request, " ")
		r, err := http.NewRequestWithContext(t.Context(), method, "https://127.0.0.1"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		got[request] = watched(r)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// fakeScopes has pods and nodes, and deployments.
type fakeScopes struct {
	discovery.ServerResourcesInterface
}

func (fakeScopes) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	switch version {
	case "v1":
		resources := []metav1.APIResource{{Name: "pods", Namespaced: true}, {Name: "nodes"}}
		return &metav1.APIResourceList{APIResources: resources}, nil
	case "apps/v1":
		return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Name: "deployments", Namespaced: true}}}, nil
	}
	return nil, errors.New("no such group")
}

func TestUsageWarnings(t *testing.T) {
	const watches, another = "this test watches", "another one watched"
	cases := map[string]struct {
		steps  string // the events in order: "a+" begins a, "a-" ends it, "a/path" is a watch of a
		failed bool
		want   []string // for the test a
	}{
		"no other tests":           {"a+ a/api/v1/pods a-", true, nil},
		"one after the other":      {"b+ b/api/v1/pods b- a+ a/api/v1/pods a- c+ c/api/v1/pods", true, nil},
		"the other ends before":    {"b+ a+ b- a/api/v1/pods a-", true, nil},
		"restricted":               {"b+ a+ a- b-", true, nil},
		"cluster-scoped resources": {"b+ b/api/v1/nodes a+ a/api/v1/nodes a-", true, nil},
		"unknown group":            {"b+ a+ a/apis/gone/v1/pods a-", true, nil},
		"it watches": {
			"b+ a+ a/api/v1/pods a/api/v1/nodes a/apis/apps/v1/deployments a-", false,
			[]string{watches + " deployments.apps, pods in all namespaces, and shares the control plane with b of p. "},
		},
		"many others": {
			"b+ c+ d+ e+ f+ a+ a/api/v1/pods a-", false,
			[]string{watches + " pods in all namespaces, and shares the control plane with b of p, c of p, d of p and 2 more. "},
		},
		"another watches, it fails":  {"b+ b/api/v1/pods a+ b- a-", true, []string{another + " pods in all namespaces"}},
		"another watches, it passes": {"b+ b/api/v1/pods a+ a-", false, nil},
		"another was killed":         {"a+ b+ b/api/v1/pods a-", true, []string{"both share: b of p. "}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			file, err := os.OpenFile(filepath.Join(t.TempDir(), usageFile), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = file.Close() }()
			for step := range strings.FieldsSeq(c.steps) {
				u := &usage{file: file, namespace: step[:1], paths: map[string]bool{}}
				switch step[1:] {
				case "+":
					u.record(usageLine{Event: testBegins, Test: u.namespace, Client: "p"})
				case "-":
					u.record(usageLine{Event: testEnds})
				default:
					u.watches(step[2:])
				}
			}
			got := (&usage{file: file, namespace: "a"}).warnings(fakeScopes{}, c.failed)
			if len(got) != len(c.want) {
				t.Fatalf("got %q, want %q", got, c.want)
			}
			for i := range got {
				if !strings.Contains(got[i], c.want[i]) || !strings.HasSuffix(got[i], restrict) {
					t.Errorf("got %q, want %q in it", got[i], c.want[i])
				}
			}
		})
	}
}

// BenchmarkUsageWarnings measures the end of a test that has failed after 10,000 others.
func BenchmarkUsageWarnings(b *testing.B) {
	file, err := os.OpenFile(filepath.Join(b.TempDir(), usageFile), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	u := &usage{file: file, paths: map[string]bool{}}
	for i := range 10_000 {
		u.namespace = fmt.Sprint(i)
		u.record(usageLine{Event: testBegins, Test: "Test" + u.namespace, Client: clientName()})
		u.record(usageLine{Event: testEnds})
	}
	u.record(usageLine{Event: testBegins, Test: "TestLast", Client: clientName()})
	for b.Loop() {
		if got := u.warnings(fakeScopes{}, true); len(got) > 0 {
			b.Fatal(got)
		}
	}
}
