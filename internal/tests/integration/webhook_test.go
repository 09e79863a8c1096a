// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// mutate serves a webhook for Resources and returns when the API server calls it for the namespace of the test.
func (e *env) mutate(reconciler reconcilers.SubReconciler[*fixture.Resource]) {
	e.Helper()
	const path = "/mutate"
	options, authority := e.WebhookOptions()
	server := webhook.NewServer(options)
	e.start(func(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
		handler, err := (&reconcilers.AdmissionWebhookAdapter[*fixture.Resource]{
			Reconciler: reconciler, Config: c,
		}).BuildWithContext(ctx)
		if err != nil {
			return err
		}
		server.Register(path, handler)
		return mgr.Add(server)
	})
	e.Eventually(func() error { return server.StartedChecker()(nil) })

	configuration := &admissionregistrationv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: e.Namespace},
		Webhooks: []admissionregistrationv1.MutatingWebhook{{
			Name:                    "resources.integration.trueup.dev",
			AdmissionReviewVersions: []string{"v1"},
			SideEffects:             new(admissionregistrationv1.SideEffectClassNone),
			NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"kubernetes.io/metadata.name": e.Namespace},
			},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{
				URL: new("https://" + net.JoinHostPort(options.Host, strconv.Itoa(options.Port)) + path), CABundle: authority,
			},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{
					admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete,
				},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{fixture.GroupVersion.Group}, APIVersions: []string{"v1"}, Resources: []string{"resources"},
				},
			}},
		}},
	}
	e.Must(e.Create(e.Context(), configuration))
	e.Cleanup(func() { e.Must(e.Delete(context.Background(), configuration)) })
	e.Eventually(func() error {
		probe := newResource("probe", map[string]string{"probe": ""})
		probe.Namespace = e.Namespace
		if err := e.Create(e.Context(), probe, client.DryRunAll); err != nil {
			return err
		}
		if probe.Spec.Fields["seen"] == "" {
			return errors.New("the webhook was not called")
		}
		return nil
	})
}

// The Go type of the webhook has fewer fields than the client that writes the resource.
func TestWebhook_keepsWhatItsTypeDoesNotKnow(t *testing.T) {
	e := newEnv(t)
	e.mutate(reconcilers.Sequence[*fixture.Resource]{
		&reconcilers.SyncReconciler[*fixture.Resource]{
			Sync: func(ctx context.Context, resource *fixture.Resource) error {
				if resource.Spec.Fields["refuse"] != "" {
					return fmt.Errorf("%s is rejected", resource.Name)
				}
				resource.Spec.Fields["seen"] = string(reconcilers.RetrieveAdmissionRequest(ctx).Operation)
				delete(resource.Spec.Fields, "unwanted")
				return reconcilers.ErrHaltSubReconcilers // a halt does not reject
			},
		},
		&reconcilers.SyncReconciler[*fixture.Resource]{
			Sync: func(context.Context, *fixture.Resource) error { return errors.New("called after a halt") },
		},
	})
	spec := func(fields map[string]any) map[string]any {
		return map[string]any{
			"fields":  fields,
			"unknown": map[string]any{"list": []any{map[string]any{"a": int64(1)}}, "big": int64(9007199254740993), "none": nil},
		}
	}
	resource := newUnstructured(resourceKind, "it")
	resource.Object["spec"] = spec(map[string]any{"mine": "1", "unwanted": "x"})
	resource.Object["besides"] = "the spec"
	e.Add(resource)
	until(e, resource, specIs(spec(map[string]any{"mine": "1", "seen": "CREATE", fixture.DefaulterField: "ran"})))
	if resource.Object["besides"] != "the spec" {
		t.Errorf("a field outside of the spec: %v", resource.Object["besides"])
	}

	change(e, resource, func(u *unstructured.Unstructured) { u.Object["spec"] = spec(map[string]any{"unwanted": "x"}) })
	until(e, resource, specIs(spec(map[string]any{"seen": "UPDATE", fixture.DefaulterField: "ran"})))

	refused := newResource("another", map[string]string{"refuse": "yes"})
	refused.Namespace = e.Namespace
	err := e.Create(t.Context(), refused)
	if err == nil ||
		!strings.Contains(
			err.Error(), `admission webhook "resources.integration.trueup.dev" denied the request: another is rejected`,
		) {
		t.Errorf("error = %v", err)
	}
	if diff := cmp.Diff(true, client.IgnoreNotFound(e.Read(refused)) == nil); diff != "" {
		t.Errorf("the rejected request (-want +got):\n%s", diff)
	}

	// A patch cannot change anything in a deletion; the API server would reject it.
	e.Must(e.Delete(t.Context(), resource))
	e.WaitForDeletion(resource)
}
