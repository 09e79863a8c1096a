// SPDX-License-Identifier: Apache-2.0

package testing_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	"trueup.dev/stash"
	rtesting "trueup.dev/testing"
	rtime "trueup.dev/time"
	"trueup.dev/validation"
)

var (
	scheme = fixture.NewScheme()
	noon   = time.Date(2026, 2, 3, 12, 0, 0, 0, time.UTC)
)

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func newResource(name string) *fixture.Resource {
	return &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// story is what the functions of a case were called with, a line each.
type story struct {
	t     *testing.T
	lines []string
}

type preparedKey struct{}

func prepared(ctx context.Context) context.Context {
	return context.WithValue(ctx, preparedKey{}, true)
}

// tell adds a line. What is the same for all functions of all kinds of cases is not told, but must be there.
func (s *story) tell(ctx context.Context, who string, metadata map[string]any) {
	s.t.Helper()
	s.lines = append(s.lines, fmt.Sprintf("%s: prepared=%t stash=%t recursive=%t metadata=%v",
		who, ctx.Value(preparedKey{}) != nil, stash.Configured(ctx), validation.IsRecursive(ctx), metadata))
	if now := rtime.RetrieveNow(ctx); !now.Equal(noon) {
		s.t.Errorf("%s: now is %s, want %s", who, now, noon)
	}
	if _, err := logr.FromContext(ctx); err != nil {
		s.t.Errorf("%s: %s", who, err)
	}
	got, ok := ctx.Deadline()
	if want, limited := s.t.Deadline(); ok != limited || !got.Equal(want) {
		s.t.Errorf("%s: the deadline is %s (%t), want that of the test: %s (%t)", who, got, ok, want, limited)
	}
}

// work needs a given object and makes another one.
func work(ctx context.Context, c reconcilers.Config) error {
	if err := c.Get(ctx, client.ObjectKeyFromObject(configMap("given")), &corev1.ConfigMap{}); err != nil {
		return err
	}
	return c.Create(ctx, configMap("made"))
}

// Cases that run in parallel can share everything that is in a table: with the race detector this test fails if one of
// them writes to it. Slices have room behind their last element, which is where a careless append writes to.
func TestParallelCasesShareTheirTable(t *testing.T) {
	const cases = 20
	given := append(make([]client.Object, 0, 4), page("home", "Hello"))
	creates := append(make([]client.Object, 0, 4), page("made", ""))
	additional := map[string]rtesting.ExpectConfig{"remote": {GivenObjects: given, ExpectCreates: creates}}
	makePage := func(ctx context.Context, c reconcilers.Config) error {
		found := page("home", "")
		if err := c.Get(ctx, client.ObjectKeyFromObject(found), found); err != nil {
			return err
		}
		found.Data["title"] = "written by a case"
		return c.Create(ctx, page("made", ""))
	}

	t.Run("Reconciler", func(t *testing.T) {
		suite := rtesting.ReconcilerTestSuite{}
		for i := range cases {
			suite = append(suite, rtesting.ReconcilerTestCase{
				Name: strconv.Itoa(i), GivenObjects: given, APIGivenObjects: given, ExpectCreates: creates,
				AdditionalConfigs: additional,
			})
		}
		suite.Run(t, scheme, doing(func(ctx context.Context, c reconcilers.Config) error {
			return errors.Join(makePage(ctx, c), makePage(ctx, reconcilers.RetrieveAdditionalConfigs(ctx)["remote"]))
		}), rtesting.Parallel())
	})
	t.Run("SubReconciler", func(t *testing.T) {
		resource, stashed := site("blog", ""), page("stashed", "")
		tc := subCase{
			Resource:            resource,
			ExpectResource:      rtesting.With(resource, func(r *fixture.Resource) { r.Spec.Fields["theme"] = "light" }),
			GivenStashedValues:  map[stash.Key]interface{}{"page": stashed},
			ExpectStashedValues: map[stash.Key]interface{}{"page": page("stashed", "new")},
			GivenObjects:        given, APIGivenObjects: given, ExpectCreates: creates,
		}
		again := tc
		again.Name = "again"
		tc.AdditionalReconciles = []subCase{again}
		suite := rtesting.SubReconcilerTestSuite[*fixture.Resource]{}
		for i := range cases {
			tc.Name = strconv.Itoa(i)
			suite = append(suite, tc)
		}
		suite.Run(t, scheme, syncing(func(ctx context.Context, r *fixture.Resource) error {
			r.Spec.Fields["theme"] = "light"
			stash.RetrieveValue(ctx, "page").(interface{ SetLabels(map[string]string) }).SetLabels(nil)
			stash.StoreValue(ctx, "page", page("stashed", "new"))
			return makePage(ctx, reconcilers.RetrieveConfigOrDie(ctx))
		}), rtesting.Parallel())
	})
	t.Run("Webhook", func(t *testing.T) {
		request := &admission.Request{
			AdmissionRequest: admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(`{}`)}},
		}
		response := admission.Response{
			AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true, Result: &metav1.Status{}},
			Patches:           []jsonpatch.Operation{{Operation: "add", Path: "/b"}, {Operation: "add", Path: "/a"}},
		}
		suite := rtesting.AdmissionWebhookTestSuite{}
		for i := range cases {
			suite = append(suite, rtesting.AdmissionWebhookTestCase{
				Name: strconv.Itoa(i), GivenObjects: given, ExpectCreates: creates, Request: request, ExpectedResponse: response,
			})
		}
		suite.RunWithContext(t, scheme, func(
			_ *testing.T, _ context.Context, _ *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
		) (*admission.Webhook, error) {
			return &admission.Webhook{Handler: handler(func(ctx context.Context, req admission.Request) admission.Response {
				copy(req.Object.Raw, "[]")
				if err := makePage(ctx, c); err != nil {
					return admission.Errored(500, err)
				}
				return admission.Patched("", response.Patches...)
			})}, nil
		}, rtesting.Parallel())
	})
}
