// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"errors"
	"fmt"
	"time"

	websitev1 "trueup.dev/examples/website/api/v1"
	"trueup.dev/reconcilers"
)

var errUnreachable = errors.New("the registry cannot be reached")

func resolve(_ context.Context, image string) (digest string, err error) {
	switch image {
	case "":
		return "", nil
	case "down":
		return "", errUnreachable
	default:
		return "sha256:1", nil
	}
}

// region errors-kinds
func ImageReconciler() reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.SyncReconciler[*websitev1.Website]{
		Name: "Image",
		SyncWithResult: func(ctx context.Context, site *websitev1.Website) (reconcilers.Result, error) {
			digest, err := resolve(ctx, site.Spec.Image)
			switch {
			case err != nil:
				// A failure: logged, counted, retried with back-off. The reconcilers that follow do not run.
				return reconcilers.Result{}, fmt.Errorf("resolve image: %w", err)
			case digest == "":
				// Not a failure, but the reconcilers that follow must not run. The status is written.
				return reconcilers.Result{}, reconcilers.ErrHaltSubReconcilers
			default:
				// Success. Check again later, because no event reports a change of the image.
				return reconcilers.Result{RequeueAfter: time.Hour}, nil
			}
		},
	}
}

// endregion

func Example_errors() {
	for _, image := range []string{"nginx", "", "down"} {
		site := newSite()
		site.Spec.Image = image
		reconcileOnce(newCluster(site), reconcilers.Sequence[*websitev1.Website]{ImageReconciler(), FeedReconciler()})
	}
	// Output:
	// feed written
	// again in 1h0m0s
	// error: resolve image: the registry cannot be reached
}

// region errors-catch
func Tolerant(r reconcilers.SubReconciler[*websitev1.Website]) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.TryCatch[*websitev1.Website]{
		Try: r,
		Catch: func(
			_ context.Context, _ *websitev1.Website, result reconcilers.Result, err error,
		) (reconcilers.Result, error) {
			if errors.Is(err, errUnreachable) {
				return reconcilers.Result{RequeueAfter: time.Minute}, nil // continue without it, retry soon
			}
			return result, err
		},
	}
}

// endregion

func Example_tryCatch() {
	site := newSite()
	site.Spec.Image = "down"
	reconcileOnce(newCluster(site), reconcilers.Sequence[*websitev1.Website]{
		Tolerant(ImageReconciler()), FeedReconciler(),
	})
	// Output:
	// feed written
	// again in 1m0s
}

// region errors-suppress
func Patient(r reconcilers.SubReconciler[*websitev1.Website]) reconcilers.SubReconciler[*websitev1.Website] {
	return &reconcilers.SuppressTransientErrors[*websitev1.Website, *websitev1.WebsiteList]{
		Threshold:  3, // the third error in a row is reported
		Reconciler: r,
	}
}

// endregion

func Example_suppressTransientErrors() {
	site := newSite()
	site.Spec.Image = "down"
	cluster, r := newCluster(site), Patient(ImageReconciler())
	for attempt := 1; attempt <= 3; attempt++ {
		fmt.Println("attempt", attempt)
		reconcileOnce(cluster, r)
	}
	// Output:
	// attempt 1
	// attempt 2
	// attempt 3
	// error: resolve image: the registry cannot be reached
}

func Example_quiet() {
	reconcileOnce(newCluster(newSite()), &reconcilers.SyncReconciler[*websitev1.Website]{
		// region errors-quiet
		Sync: func(context.Context, *websitev1.Website) error {
			err := errors.New("another controller is not done yet")
			return errors.Join(err, reconcilers.ErrQuiet) // back-off as for any error, but not logged
		},
		// endregion
	})
	fmt.Println("silence")
	// Output:
	// silence
}
