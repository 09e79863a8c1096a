// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
)

// outcomeUnknown is true for an error after which a write may have happened all the same: no answer, or one that says that the server got into trouble on
// the way. An answer that refuses the write is certain.
func outcomeUnknown(err error) bool {
	if status := apierrs.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Code >= http.StatusInternalServerError
	}
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	var (
		sent    *url.Error
		network net.Error
	)
	return errors.As(err, &sent) || errors.As(err, &network) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
