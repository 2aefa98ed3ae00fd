/** The view follows what grows at its end, unless the reader scrolled up. */

const NEAR = 48;  // pixels from the end that count as there

/** Follows a pane's content; `button` leads back to the end. Returns a function that does. */
export function follow(pane, content, button) {
  let isFollowing = true;
  let last = 0;
  const left = () => pane.scrollHeight - pane.scrollTop - pane.clientHeight;
  const toEnd = () => {
    isFollowing = true;
    button.hidden = true;
    pane.scrollTop = pane.scrollHeight;
  };
  pane.addEventListener("scroll", () => {
    const wentUp = pane.scrollTop < last;
    last = pane.scrollTop;
    if (wentUp) isFollowing = left() < 2;
    else if (left() < NEAR) isFollowing = true;
    button.hidden = isFollowing;
  });
  const stay = new ResizeObserver(() => isFollowing && toEnd());
  stay.observe(pane);
  stay.observe(content);
  button.addEventListener("click", toEnd);
  return toEnd;
}
