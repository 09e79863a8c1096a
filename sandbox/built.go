// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// IsBuilt reports whether Start with the same options finds the binary of the control plane, so that it does not have
// to build it first. It starts and builds nothing.
func IsBuilt(ctx context.Context, o Options) (bool, error) {
	if err := o.prepare(); err != nil {
		return false, err
	}
	if o.Kubeconfig != "" || o.Backend == Memory {
		return true, nil
	}
	if o.Binary != "" || os.Getenv(BinaryVariable) != "" {
		_, err := findBinary(ctx, &o)
		return err == nil, err
	}
	_, cached, err := locateCached(ctx)
	if err != nil {
		return false, err
	}
	if err = checkExecutable(cached); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("sandbox: %w", err)
	}
	return true, nil
}
