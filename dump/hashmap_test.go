package dump

// What a HashMap of Java 17 was filled with by computeIfAbsent, every second name twice, and its keys.
const (
	hashMapAdded = `
/d0/t-0.log /d41/t-1.log /d82/t-2.log /d22/t-3.log /é€😀4 /d3/t-5.log /d44/t-6.log /d85/t-7.log /d25/t-8.log
/d66/t-9.log /d6/t-10.log /d47/t-11.log /d88/t-12.log /é€😀13 /d69/t-14.log /d9/t-15.log /d50/t-16.log
/d91/t-17.log /d31/t-18.log /d72/t-19.log /d12/t-20.log /d53/t-21.log /é€😀22 /d34/t-23.log /d75/t-24.log
/d15/t-25.log /d56/t-26.log /d97/t-27.log /d37/t-28.log /d78/t-29.log /d18/t-30.log /é€😀31 /d100/t-32.log
/d40/t-33.log /d81/t-34.log /d21/t-35.log /d62/t-36.log /d2/t-37.log /d43/t-38.log /d84/t-39.log /é€😀40
/d65/t-41.log /d5/t-42.log /d46/t-43.log /d87/t-44.log /d27/t-45.log /d68/t-46.log /d8/t-47.log /d49/t-48.log
/é€😀49 /d30/t-50.log /d71/t-51.log /d11/t-52.log /d52/t-53.log /d93/t-54.log /d33/t-55.log /d74/t-56.log
/d14/t-57.log /é€😀58 /d96/t-59.log`
	hashMapWalked = `
/é€😀31 /d82/t-2.log /d40/t-33.log /d84/t-39.log /d41/t-1.log /d21/t-35.log /d78/t-29.log /d46/t-43.log
/d27/t-45.log /d97/t-27.log /d65/t-41.log /é€😀40 /d30/t-50.log /d72/t-19.log /d9/t-15.log /d71/t-51.log
/d69/t-14.log /d6/t-10.log /é€😀49 /d12/t-20.log /d0/t-0.log /d87/t-44.log /d33/t-55.log /d56/t-26.log
/d53/t-21.log /é€😀4 /d31/t-18.log /d15/t-25.log /d74/t-56.log /d62/t-36.log /d43/t-38.log /d18/t-30.log
/d2/t-37.log /é€😀13 /d81/t-34.log /é€😀58 /d75/t-24.log /d49/t-48.log /d68/t-46.log /d100/t-32.log
/d47/t-11.log /d52/t-53.log /d3/t-5.log /d11/t-52.log /é€😀22 /d96/t-59.log /d25/t-8.log /d14/t-57.log
/d91/t-17.log /d8/t-47.log /d44/t-6.log /d66/t-9.log /d37/t-28.log /d22/t-3.log /d5/t-42.log /d85/t-7.log
/d88/t-12.log /d93/t-54.log /d50/t-16.log /d34/t-23.log`
)
