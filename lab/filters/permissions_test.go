// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"trueup.dev/console"
	"trueup.dev/graph"
	"trueup.dev/graph/rbac"
	"trueup.dev/internal/testkit/apitest"
	"trueup.dev/internal/testkit/await"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
)

// addWriter adds a controller that writes a Secret for each ConfigMap.
func addWriter(ctx context.Context, mgr ctrl.Manager) error {
	c := reconcilers.NewConfig(mgr, nil, time.Hour)
	return (&reconcilers.ResourceReconciler[*corev1.ConfigMap]{
		Name: "Writer", Config: c, SkipStatusUpdate: true,
		Reconciler: &reconcilers.SyncReconciler[*corev1.ConfigMap]{
			Name: "Secret",
			Sync: func(ctx context.Context, from *corev1.ConfigMap) error {
				return c.Create(ctx, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: from.Namespace, Name: from.Name},
				})
			},
			Describe: func(n *graph.Node) {
				n.Needs(&corev1.Secret{}, "", "create")
				n.Needs(&corev1.Pod{}, "eviction", "create")
				n.Needs(&corev1.Service{}, "", "delete")
			},
		},
	}).SetupWithManager(ctx, mgr)
}

// TestWhatWouldItNeedPermissionFor runs a controller as a user whose role lacks what it uses and what it declares, and
// grants what it does not need. A reader who may do nothing but read the console sees which.
func TestWhatWouldItNeedPermissionFor(t *testing.T) {
	e := apitest.New(t, clientgoscheme.Scheme, sandbox.TestOptions{})
	rule := func(resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: verbs}
	}
	review := func(group, resource string) rbacv1.PolicyRule { // for the filter
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"create"}}
	}
	grant(e, "writer-of-"+e.Namespace, "writer",
		rule("configmaps", "get", "list", "watch"), rule("events", "create", "patch"), rule("services", "delete"),
		rule("endpoints", "list"),
		review("authentication.k8s.io", "tokenreviews"), review("authorization.k8s.io", "subjectaccessreviews"),
	)
	grant(e, "console-of-"+e.Namespace, "operator", rbacv1.PolicyRule{
		NonResourceURLs: []string{"/console/*"}, Verbs: []string{"get"},
	})
	operator, recorder := token(e, "operator"), &rbac.Recorder{}
	config := rest.AnonymousClientConfig(e.RESTConfig())
	config.BearerToken = token(e, "writer")
	config.Wrap(recorder.Wrap)
	address := fmt.Sprintf("127.0.0.1:%d", e.FreePort())
	e.Manager(config, ctrl.Options{Metrics: metricsserver.Options{
		BindAddress: address, SecureServing: true, FilterProvider: filters.WithAuthenticationAndAuthorization,
		CertDir: t.TempDir(),
	}}, func(_ context.Context, mgr ctrl.Manager) error {
		return console.AddToManager(mgr, console.Options{Namespaces: []string{e.Namespace}})
	}, addWriter)
	e.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "from"}})
	await.Nil(t, apitest.Timeout, func() error {
		if needed := (rbac.Permission{Resource: "secrets", Verb: "create"}); !recorder.Used()[needed] {
			return errors.New("the controller has not written")
		}
		return nil
	})

	var got console.Permissions
	await.Nil(t, apitest.Timeout, func() error {
		status, body, err := request(t, "https://"+address+"/console/permissions", operator, "application/json")
		if err != nil || status != http.StatusOK {
			return fmt.Errorf("status %d, %w: %s", status, err, body)
		}
		return json.Unmarshal([]byte(body), &got)
	})
	row := func(state console.PermissionState, group, resource, verbs string, declared, used bool) console.Permission {
		p := console.Permission{
			State: state, Group: group, Resource: resource, Verbs: strings.Fields(verbs), Declared: declared, Used: used,
		}
		if state == console.PermissionMissing {
			p.MissingIn = []string{e.Namespace}
		}
		return p
	}
	const missing, unused, granted = console.PermissionMissing, console.PermissionUnused, console.PermissionGranted
	want := console.Permissions{
		User: "system:serviceaccount:" + e.Namespace + ":writer", Namespaces: []string{e.Namespace}, Missing: 2, Unused: 3,
		Permissions: []console.Permission{
			row(missing, "", "secrets", "create", true, true),
			row(missing, "", "pods/eviction", "create", true, false),
			row(unused, "", "endpoints", "list", false, false),
			row(unused, "authentication.k8s.io", "tokenreviews", "create", false, false),
			row(unused, "authorization.k8s.io", "subjectaccessreviews", "create", false, false),
			row(granted, "", "configmaps", "list watch", true, true),
			row(granted, "", "configmaps", "get", true, false),
			row(granted, "", "events", "create patch", true, false),
			row(granted, "", "services", "delete", true, false),
		},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(console.Permissions{}, "Asked")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// The console asks, and writes nothing.
	for p := range recorder.Used() {
		isReview := strings.HasSuffix(p.Resource, "reviews") && p.Verb == "create"
		isRead := p.Verb == "get" || p.Verb == "list" || p.Verb == "watch"
		if !isReview && !isRead && p.Resource != "secrets" && p.Resource != "events" {
			t.Errorf("the program has sent a request to %s", p)
		}
	}
}
