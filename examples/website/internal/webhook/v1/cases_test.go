// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"trueup.dev/examples/website"
	websitev1 "trueup.dev/examples/website/api/v1"
	webhookv1 "trueup.dev/examples/website/internal/webhook/v1"
	"trueup.dev/reconcilers"
	"trueup.dev/sandbox"
	rtesting "trueup.dev/testing"
)

// shop has all defaults.
var shop = &websitev1.Website{
	TypeMeta:   metav1.TypeMeta{APIVersion: websitev1.GroupVersion.String(), Kind: "Website"},
	ObjectMeta: metav1.ObjectMeta{Namespace: "cases", Name: "shop"},
	Spec: websitev1.WebsiteSpec{
		Domain: "shop.example.com", Image: "nginx:1.29", Replicas: new(int32(1)),
		Pages: []websitev1.Page{{Name: "index", Title: "Welcome"}},
	},
}

func domain(name string) func(*websitev1.Website) {
	return func(site *websitev1.Website) { site.Spec.Domain = name }
}

func protected(value string) func(*websitev1.Website) {
	return func(site *websitev1.Website) {
		site.Annotations = map[string]string{websitev1.AnnotationProtected: value}
	}
}

// asks returns a request to write a site, or to delete it: then only oldObject is set.
func asks(operation admissionv1.Operation, object, old *websitev1.Website) *admission.Request {
	raw := func(site *websitev1.Website) runtime.RawExtension {
		if site == nil {
			return runtime.RawExtension{}
		}
		data, err := json.Marshal(site)
		if err != nil {
			panic(err)
		}
		return runtime.RawExtension{Raw: data}
	}
	return &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "request", Operation: operation, Namespace: shop.Namespace, Name: shop.Name,
		Kind:   metav1.GroupVersionKind{Group: "demo.trueup.dev", Version: "v1", Kind: "Website"},
		Object: raw(object), OldObject: raw(old),
	}}
}

func allowed(patches ...jsonpatch.Operation) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}, Patches: patches}
}

func denied(code int32, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) admission.Response {
	details := &metav1.StatusDetails{Group: "demo.trueup.dev", Kind: "websites", Name: "shop", Causes: causes}
	if causes != nil {
		details.Kind = "Website"
	}
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message, Details: details,
	}}}
}

// runOnBoth runs cases in memory, and then the same cases on a real API.
func runOnBoth(
	t *testing.T, cases rtesting.AdmissionWebhookTests,
	adapter func(reconcilers.Config) *reconcilers.AdmissionWebhookAdapter[*websitev1.Website],
) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, website.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	byDomain := func(builder *fake.ClientBuilder) *fake.ClientBuilder {
		return builder.WithIndex(&websitev1.Website{}, "spec.domain", func(obj client.Object) []string {
			return []string{obj.(*websitev1.Website).Spec.Domain}
		})
	}
	for name, tc := range cases {
		tc.WithClientBuilder = byDomain
		cases[name] = tc
	}
	build := func(
		_ *testing.T, ctx context.Context, _ *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
	) (*admission.Webhook, error) {
		return adapter(c).BuildWithContext(ctx)
	}
	t.Run("in memory", func(t *testing.T) { cases.RunWithContext(t, scheme, build) })
	t.Run("on a cluster", func(t *testing.T) {
		sb := sandbox.ForTest(t, sandbox.TestOptions{CRDs: []any{website.CRDs()}})
		cases.RunWithContext(t, scheme, build, rtesting.OnCluster(sb.RESTConfig()))
	})
}

// cacheHas answers lists like a stale cache that still contains deleted sites.
func cacheHas(site *websitev1.Website) rtesting.ReactionFunc {
	return func(action rtesting.Action) (bool, runtime.Object, error) {
		return action.GetVerb() == "list", &websitev1.WebsiteList{Items: []websitev1.Website{*site}}, nil
	}
}

func TestDefaultingCases(t *testing.T) {
	replace := func(path, value string) jsonpatch.Operation { return jsonpatch.NewOperation("replace", path, value) }
	runOnBoth(t, rtesting.AdmissionWebhookTests{
		"no fields are missing": {
			Request:          asks(admissionv1.Create, shop, nil),
			ExpectedResponse: allowed(),
		},
		"a domain in capitals": {
			Request:          asks(admissionv1.Update, rtesting.With(shop, domain("Shop.Example.COM")), shop),
			ExpectedResponse: allowed(replace("/spec/domain", "shop.example.com")),
		},
		"pages without titles": {
			Request: asks(admissionv1.Create, rtesting.With(shop, func(site *websitev1.Website) {
				site.Spec.Pages = []websitev1.Page{{Name: "index", Title: "Welcome"}, {Name: "opening-hours"}, {Name: "über-uns"}}
				site.Spec.Languages = []websitev1.Language{
					{Code: "de", Pages: []websitev1.Page{{Name: "index", Title: "Willkommen"}, {Name: "opening-hours"}}},
				}
			}), nil),
			ExpectedResponse: allowed(
				replace("/spec/pages/1/title", "Opening hours"), replace("/spec/pages/2/title", "Über uns"),
				replace("/spec/languages/0/pages/1/title", "Opening hours"),
			),
		},
		"a page without a name is left to the schema, which rejects it": {
			Request: asks(
				admissionv1.Create, rtesting.With(shop, func(site *websitev1.Website) { site.Spec.Pages = []websitev1.Page{{}} }),
				nil,
			),
			ExpectedResponse: allowed(),
		},
	}, webhookv1.NewDefaultingWebhook)
}

func TestValidatingCases(t *testing.T) {
	const forbidden = `websites.demo.trueup.dev "shop" is forbidden: it is protected: remove the annotation demo.trueup.dev/protected first`
	other := rtesting.With(shop, func(site *websitev1.Website) {
		site.TypeMeta = metav1.TypeMeta{}
		site.Name = "other"
	})
	moved := rtesting.With(other, domain("elsewhere.example.com"))
	leaving := rtesting.With(other, func(site *websitev1.Website) {
		site.Finalizers = []string{"example.com/hold"}
		site.DeletionTimestamp = new(metav1.Now())
	})
	cause := metav1.StatusCause{
		Type: metav1.CauseTypeFieldValueInvalid, Field: "spec.domain",
		Message: `Invalid value: "shop.example.com": the Website "other" in this namespace already has this domain`,
	}
	taken := denied(http.StatusUnprocessableEntity, metav1.StatusReasonInvalid,
		fmt.Sprintf(`Website.demo.trueup.dev "shop" is invalid: spec.domain: %s`, cause.Message), cause)
	failure := admission.Errored(http.StatusInternalServerError, errors.New("inducing failure for list WebsiteList"))

	runOnBoth(t, rtesting.AdmissionWebhookTests{
		"a new site with a free domain": {
			Request:          asks(admissionv1.Create, shop, nil),
			GivenObjects:     []client.Object{moved},
			ExpectedResponse: allowed(),
		},
		"a new site with a taken domain": {
			Request:          asks(admissionv1.Create, shop, nil),
			GivenObjects:     []client.Object{other},
			APIGivenObjects:  []client.Object{other},
			ExpectedResponse: taken,
		},
		"a new site with the domain of a site that is being deleted": {
			Request:          asks(admissionv1.Create, shop, nil),
			GivenObjects:     []client.Object{leaving},
			APIGivenObjects:  []client.Object{leaving},
			ExpectedResponse: allowed(),
		},
		"a new site with the domain of a site that only the cache still has": {
			Request:          asks(admissionv1.Create, shop, nil),
			WithReactors:     []rtesting.ReactionFunc{cacheHas(other)},
			ExpectedResponse: allowed(),
		},
		"a site moves to a domain that is taken": {
			Request:          asks(admissionv1.Update, shop, rtesting.With(shop, domain("old.example.com"))),
			GivenObjects:     []client.Object{other},
			APIGivenObjects:  []client.Object{other},
			ExpectedResponse: taken,
		},
		"a site keeps the domain that it had before the webhook existed": {
			Request:          asks(admissionv1.Update, rtesting.With(shop, protected("true")), shop),
			GivenObjects:     []client.Object{other},
			APIGivenObjects:  []client.Object{other},
			ExpectedResponse: allowed(),
		},
		"sites cannot be listed": {
			Request:          asks(admissionv1.Create, shop, nil),
			WithReactors:     []rtesting.ReactionFunc{rtesting.InduceFailure("list", "WebsiteList")},
			ExpectedResponse: failure,
		},
		"the old site cannot be read": {
			Request: func() *admission.Request {
				request := asks(admissionv1.Update, shop, shop)
				request.OldObject.Raw = []byte("{")
				return request
			}(),
			ExpectedResponse: admission.Errored(http.StatusInternalServerError, errors.New("unexpected end of JSON input")),
		},
		"a protected site is not deleted": {
			Request:          asks(admissionv1.Delete, nil, rtesting.With(shop, protected("true"))),
			ExpectedResponse: denied(http.StatusForbidden, metav1.StatusReasonForbidden, forbidden),
		},
		"a site is deleted": {
			Request:          asks(admissionv1.Delete, nil, rtesting.With(shop, protected("false"))),
			ExpectedResponse: allowed(),
		},
	}, webhookv1.NewValidatingWebhook)
}
