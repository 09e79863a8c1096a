// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"fmt"
	"time"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/external"
	"trueup.dev/reconcilers"
)

// Bucket is a bucket of a cloud.
type Bucket struct{ ID, Owner, Domain string }

// Buckets is the client of a cloud.
type Buckets interface {
	Get(ctx context.Context, id string) (*Bucket, error) // nil if it does not exist
	FindByTag(ctx context.Context, owner string) (*Bucket, error)
	Create(ctx context.Context, owner, domain string) (*Bucket, error)
	SetDomain(ctx context.Context, id, domain string) error
	Delete(ctx context.Context, id string) error
}

// region external
func BucketReconciler(buckets Buckets) reconcilers.SubReconciler[*websitev1.Website] {
	return &external.Resource[*websitev1.Website, *Bucket]{
		Name:          "Bucket",
		Finalizer:     "websites.example.com/bucket",
		DriftInterval: time.Hour,
		ID:            func(site *websitev1.Website) string { return site.Status.URL },
		SetID:         func(site *websitev1.Website, id string) { site.Status.URL = id },
		Find: func(ctx context.Context, _ *websitev1.Website, token string) (string, *Bucket, bool, error) {
			bucket, err := buckets.FindByTag(ctx, token)
			if err != nil || bucket == nil {
				return "", nil, false, err
			}
			return bucket.ID, bucket, true, nil
		},
		Observe: func(ctx context.Context, _ *websitev1.Website, id string) (*Bucket, bool, error) {
			bucket, err := buckets.Get(ctx, id)
			return bucket, bucket != nil, err
		},
		Create: func(ctx context.Context, site *websitev1.Website, token string) (string, *Bucket, error) {
			bucket, err := buckets.Create(ctx, token, site.Spec.Domain)
			if err != nil {
				return "", nil, err
			}
			return bucket.ID, bucket, nil
		},
		InSync: func(_ context.Context, site *websitev1.Website, bucket *Bucket) bool {
			return bucket.Domain == site.Spec.Domain
		},
		Update: func(ctx context.Context, site *websitev1.Website, id string, bucket *Bucket) (*Bucket, error) {
			bucket.Domain = site.Spec.Domain
			return bucket, buckets.SetDomain(ctx, id, bucket.Domain)
		},
		Delete: func(ctx context.Context, _ *websitev1.Website, id string) error {
			return buckets.Delete(ctx, id)
		},
	}
}

// endregion

// region external-condition
func BucketWithCondition(buckets Buckets) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.TryCatch[*websitev1.Website]{
		Try: BucketReconciler(buckets),
		Catch: func(
			ctx context.Context, site *websitev1.Website, result reconcilers.Result, err error,
		) (reconcilers.Result, error) {
			conditions := site.Status.ConditionManager(ctx)
			switch {
			case err == nil:
				conditions.MarkTrue(websitev1.ConditionRecordReady, "Exists", "")
			case errors.Is(err, reconcilers.ErrHaltSubReconcilers):
				conditions.MarkUnknown(websitev1.ConditionRecordReady, "Pending", "the bucket is not ready")
			default:
				conditions.MarkFalse(websitev1.ConditionRecordReady, "BucketFailed", "%v", err)
			}
			return result, err
		},
	}
}

// endregion

// memoryBuckets is a cloud that prints its calls.
type memoryBuckets map[string]*Bucket

func (m memoryBuckets) Get(_ context.Context, id string) (*Bucket, error) { return m[id], nil }

func (m memoryBuckets) FindByTag(_ context.Context, owner string) (*Bucket, error) {
	fmt.Println("find", owner)
	for _, bucket := range m {
		if bucket.Owner == owner {
			return bucket, nil
		}
	}
	return nil, nil
}

func (m memoryBuckets) Create(_ context.Context, owner, domain string) (*Bucket, error) {
	fmt.Println("create", domain)
	m["b1"] = &Bucket{ID: "b1", Owner: owner, Domain: domain}
	return m["b1"], nil
}

func (m memoryBuckets) SetDomain(context.Context, string, string) error { return nil }
func (m memoryBuckets) Delete(context.Context, string) error            { return nil }

func Example_external() {
	cluster, buckets := newCluster(newSite()), memoryBuckets{}
	process := func() {
		bucket := BucketReconciler(buckets).(*external.Resource[*websitev1.Website, *Bucket])
		bucket.DriftInterval = 0
		reconcileOnce(cluster, bucket)
	}
	process()
	fmt.Println("after a restart, and a lost status:")
	process()
	// Output:
	// event: Normal FinalizerPatched: Patched finalizer "websites.example.com/bucket"
	// find 1
	// create bakery.example.com
	// event: Normal ExternalCreated: Created Bucket b1
	// after a restart, and a lost status:
	// find 1
	// event: Normal ExternalFound: Found Bucket b1
}

// brokenBuckets refuses creations.
type brokenBuckets struct{ memoryBuckets }

func (brokenBuckets) Create(context.Context, string, string) (*Bucket, error) {
	return nil, errors.New("quota exceeded")
}

// The condition has the error, and later that the bucket exists.
func Example_externalCondition() {
	for _, buckets := range []Buckets{brokenBuckets{memoryBuckets{}}, memoryBuckets{}} {
		reconcileOnce(newCluster(newSite()), &reconcilers.TryCatch[*websitev1.Website]{
			Try: BucketWithCondition(buckets),
			Catch: func(
				ctx context.Context, site *websitev1.Website, _ reconcilers.Result, _ error,
			) (reconcilers.Result, error) {
				condition := site.Status.ConditionManager(ctx).GetCondition(websitev1.ConditionRecordReady)
				fmt.Println(condition.Status, condition.Reason, condition.Message)
				return reconcilers.Result{}, nil
			},
		})
	}
	// Output:
	// event: Normal FinalizerPatched: Patched finalizer "websites.example.com/bucket"
	// find 1
	// False BucketFailed create Bucket: quota exceeded
	// event: Normal FinalizerPatched: Patched finalizer "websites.example.com/bucket"
	// find 1
	// create bakery.example.com
	// event: Normal ExternalCreated: Created Bucket b1
	// True Exists
}

// A website that is restored from a backup finds its bucket.
func Example_externalNameToken() {
	buckets := memoryBuckets{}
	bucket := BucketReconciler(buckets).(*external.Resource[*websitev1.Website, *Bucket])
	// region external-name-token
	bucket.Token = external.NameToken[*websitev1.Website]("production")
	// endregion
	bucket.DriftInterval = 0
	reconcileOnce(newCluster(newSite()), bucket)
	fmt.Println("restored:")
	restored := newSite()
	restored.UID = "2"
	reconcileOnce(newCluster(restored), bucket)
	// Output:
	// event: Normal FinalizerPatched: Patched finalizer "websites.example.com/bucket"
	// find production/default/bakery
	// create bakery.example.com
	// event: Normal ExternalCreated: Created Bucket b1
	// restored:
	// event: Normal FinalizerPatched: Patched finalizer "websites.example.com/bucket"
	// find production/default/bakery
	// event: Normal ExternalFound: Found Bucket b1
}

// A website takes over a bucket that exists.
func Example_externalImport() {
	buckets := memoryBuckets{"b7": {ID: "b7", Domain: "bakery.example.com"}}
	bucket := BucketReconciler(buckets).(*external.Resource[*websitev1.Website, *Bucket])
	// region external-import
	bucket.Import = func(site *websitev1.Website) string { return site.Annotations["websites.example.com/import-bucket"] }
	// endregion
	bucket.DriftInterval = 0
	site := newSite()
	site.Annotations = map[string]string{"websites.example.com/import-bucket": "b7"}
	reconcileOnce(newCluster(site), bucket)
	// Output:
	// event: Normal FinalizerPatched: Patched finalizer "websites.example.com/bucket"
	// event: Normal ExternalImported: Imported Bucket b7
}
