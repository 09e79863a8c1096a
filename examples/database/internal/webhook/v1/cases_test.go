// SPDX-License-Identifier: Apache-2.0

package v1_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	databasev1 "trueup.dev/examples/database/api/v1"
	webhookv1 "trueup.dev/examples/database/internal/webhook/v1"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

var shop = &databasev1.Database{
	TypeMeta:   metav1.TypeMeta{APIVersion: databasev1.GroupVersion.String(), Kind: "Database"},
	ObjectMeta: metav1.ObjectMeta{Namespace: "cases", Name: "shop"},
	Spec:       databasev1.DatabaseSpec{Version: 18, Replicas: new(int32(1)), Storage: resource.MustParse("1Gi")},
}

// request is a request of the API server. A request without an object has no old object, either.
func request(operation admissionv1.Operation, object, old *databasev1.Database, options string) *admission.Request {
	raw := func(db *databasev1.Database) runtime.RawExtension {
		if db == nil {
			return runtime.RawExtension{}
		}
		data, err := json.Marshal(db)
		if err != nil {
			panic(err)
		}
		return runtime.RawExtension{Raw: data}
	}
	return &admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "request", Operation: operation, Namespace: shop.Namespace, Name: shop.Name,
		Kind:   metav1.GroupVersionKind{Group: "database.trueup.dev", Version: "v1", Kind: "Database"},
		Object: raw(object), OldObject: raw(old), Options: runtime.RawExtension{Raw: []byte(options)},
	}}
}

func allowed(patches ...jsonpatch.Operation) admission.Response {
	return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Allowed: true}, Patches: patches}
}

func run(
	t *testing.T, cases rtesting.AdmissionWebhookTests,
	adapter func(reconcilers.Config) *reconcilers.AdmissionWebhookAdapter[*databasev1.Database],
) {
	t.Helper()
	cases.RunWithContext(t, newScheme(t), func(
		_ *testing.T, ctx context.Context, _ *rtesting.AdmissionWebhookTestCase, c reconcilers.Config,
	) (*admission.Webhook, error) {
		return adapter(c).BuildWithContext(ctx)
	})
}

func TestDefaultingCases(t *testing.T) {
	named := func(names ...string) *databasev1.Database {
		return rtesting.With(shop, func(db *databasev1.Database) {
			db.Spec.Parameters = map[string]string{}
			for _, name := range names {
				db.Spec.Parameters[name] = "1"
			}
		})
	}
	run(t, rtesting.AdmissionWebhookTests{
		"no defaults needed": {
			Request:          request(admissionv1.Create, named("work_mem"), nil, ""),
			ExpectedResponse: allowed(),
		},
		"a backup without a target": {
			Request: request(admissionv1.Create, rtesting.With(shop, withBackup), nil, ""),
			ExpectedResponse: allowed(
				jsonpatch.NewOperation("add", "/spec/backup/target", "backups/cases/shop")),
		},
		"a duplicate name is left to the schema, which rejects it": {
			Request:          request(admissionv1.Create, named("work_mem", "Work_Mem"), nil, ""),
			ExpectedResponse: allowed(),
		},
	}, webhookv1.NewDefaultingWebhook)
}

func TestValidatingCases(t *testing.T) {
	kept := rtesting.With(shop, withBackup)
	denied := admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
		Message: `databases.database.trueup.dev "shop" is forbidden: foreground deletion stops the servers before the final ` +
			`backup: use --cascade=background, or set the annotation database.trueup.dev/skip-final-backup to true`,
		Details: &metav1.StatusDetails{Group: "database.trueup.dev", Kind: "databases", Name: "shop"},
	}}}
	warned := allowed()
	warned.Warnings = []string{"spec.storage: the size of existing volumes cannot change from 1Gi to 2Gi"}
	grown := rtesting.With(shop, func(db *databasev1.Database) { db.Spec.Storage = resource.MustParse("2Gi") })
	same := rtesting.With(shop, func(db *databasev1.Database) { db.Spec.Storage = resource.MustParse("1024Mi") })

	run(t, rtesting.AdmissionWebhookTests{
		"deleted in the foreground": {
			Request:          request(admissionv1.Delete, nil, kept, `{"propagationPolicy":"Foreground"}`),
			ExpectedResponse: denied,
		},
		"deleted in the background": {
			Request:          request(admissionv1.Delete, nil, kept, `{"propagationPolicy":"Background"}`),
			ExpectedResponse: allowed(),
		},
		"deleted without options": {
			Request:          request(admissionv1.Delete, nil, kept, ""),
			ExpectedResponse: allowed(),
		},
		"other storage": {
			Request:          request(admissionv1.Update, grown, shop, ""),
			ExpectedResponse: warned,
		},
		"the same storage in another notation": {
			Request:          request(admissionv1.Update, same, shop, ""),
			ExpectedResponse: allowed(),
		},
	}, webhookv1.NewValidatingWebhook)
}
