// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
)

// region webhooks-adapter
func WebsiteWebhook(c reconcilers.Config) *reconcilers.AdmissionWebhookAdapter[*websitev1.Website] {
	return &reconcilers.AdmissionWebhookAdapter[*websitev1.Website]{
		Name: "Website",
		Reconciler: reconcilers.Sequence[*websitev1.Website]{
			&reconcilers.SyncReconciler[*websitev1.Website]{
				Name: "Default",
				Sync: func(_ context.Context, site *websitev1.Website) error {
					site.Spec.Domain = strings.ToLower(site.Spec.Domain) // changes are sent back as a patch
					return nil
				},
			},
			&reconcilers.SyncReconciler[*websitev1.Website]{
				Name: "Validate",
				Sync: func(ctx context.Context, site *websitev1.Website) error {
					if strings.HasSuffix(site.Spec.Domain, ".test") {
						response := reconcilers.RetrieveAdmissionResponse(ctx)
						response.Allowed = false
						response.Result = &metav1.Status{Code: http.StatusForbidden, Message: "domains below .test are not published"}
					}
					return nil
				},
			},
		},
		Config: c,
	}
}

// endregion

func registerWebhook(ctx context.Context, mgr ctrl.Manager, c reconcilers.Config) error {
	// region webhooks-register
	webhook, err := WebsiteWebhook(c).BuildWithContext(ctx) // reports every mistake in the tree
	if err != nil {
		return err
	}
	mgr.GetWebhookServer().Register("/website", webhook)
	// endregion
	return nil
}

// region webhooks-delete
func DeletionWebhook(c reconcilers.Config) *reconcilers.AdmissionWebhookAdapter[*websitev1.Website] {
	return &reconcilers.AdmissionWebhookAdapter[*websitev1.Website]{
		Name: "WebsiteDeletion",
		Reconciler: &reconcilers.SyncReconciler[*websitev1.Website]{
			SyncDuringFinalization: true, // the site may already have a deletion timestamp
			Sync: func(ctx context.Context, _ *websitev1.Website) error {
				request := reconcilers.RetrieveAdmissionRequest(ctx)
				if request.Operation != admissionv1.Delete {
					return nil
				}
				options := &metav1.DeleteOptions{}
				if len(request.Options.Raw) > 0 {
					if err := json.Unmarshal(request.Options.Raw, options); err != nil {
						return err
					}
				}
				if policy := options.PropagationPolicy; policy != nil && *policy == metav1.DeletePropagationForeground {
					response := reconcilers.RetrieveAdmissionResponse(ctx)
					response.Allowed = false
					response.Result = &metav1.Status{Code: http.StatusForbidden, Message: "delete it with --cascade=background"}
				}
				return nil
			},
		},
		Config: c,
	}
}

// endregion

// region webhooks-warnings
func WarningWebhook(c reconcilers.Config) *reconcilers.AdmissionWebhookAdapter[*websitev1.Website] {
	return &reconcilers.AdmissionWebhookAdapter[*websitev1.Website]{
		Name: "WebsiteWarnings",
		Reconciler: &reconcilers.SyncReconciler[*websitev1.Website]{
			Sync: func(ctx context.Context, site *websitev1.Website) error {
				if len(site.Spec.Pages) == 0 {
					response := reconcilers.RetrieveAdmissionResponse(ctx)
					response.Warnings = append(response.Warnings, "spec.pages is empty: nothing is published")
				}
				return nil
			},
		},
		Config: c,
	}
}

// endregion

func Example_webhookOfDeletions() {
	webhook, err := DeletionWebhook(newCluster()).BuildWithContext(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	raw, err := json.Marshal(newSite())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, options := range []string{`{"propagationPolicy": "Foreground"}`, `{"propagationPolicy": "Background"}`, ""} {
		request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Delete,
			OldObject: runtime.RawExtension{Raw: raw},
			Options:   runtime.RawExtension{Raw: []byte(options)},
		}}
		response := webhook.Handler.Handle(context.Background(), request)
		if response.Allowed {
			fmt.Println("allowed")
			continue
		}
		fmt.Println("denied:", response.Result.Message)
	}
	// Output:
	// denied: delete it with --cascade=background
	// allowed
	// allowed
}

func Example_webhookWarnings() {
	webhook, err := WarningWebhook(newCluster()).BuildWithContext(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	site := newSite()
	site.Spec.Pages = nil
	raw, err := json.Marshal(site)
	if err != nil {
		fmt.Println(err)
		return
	}
	request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
	}}
	response := webhook.Handler.Handle(context.Background(), request)
	fmt.Println(response.Allowed, response.Warnings)
	// Output:
	// true [spec.pages is empty: nothing is published]
}

func Example_webhook() {
	_ = registerWebhook
	webhook, err := WebsiteWebhook(newCluster()).BuildWithContext(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, domain := range []string{"Bakery.Example.com", "bakery.test"} {
		site := newSite()
		site.Spec.Domain = domain
		raw, err := json.Marshal(site)
		if err != nil {
			fmt.Println(err)
			return
		}
		request := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
		}}
		response := webhook.Handler.Handle(context.Background(), request)
		if !response.Allowed {
			fmt.Println("denied:", response.Result.Message)
		}
		for _, patch := range response.Patches {
			fmt.Println(patch.Operation, patch.Path, patch.Value)
		}
	}
	// Output:
	// replace /spec/domain bakery.example.com
	// denied: domains below .test are not published
}
